#include <algorithm>
#include <cmath>
#include <map>

#include "app/answers/memory_answer.h"

namespace tpsim::app {
namespace {

// A segment that grows. Allocates first fit.
class Segment {
 public:
  std::int64_t allocate(std::int64_t bytes) {
    const auto fits = [&](const auto& gap) { return gap.second >= bytes; };
    const auto gap = std::find_if(gaps_.begin(), gaps_.end(), fits);
    if (gap == gaps_.end()) {
      end_ += bytes;
      return end_ - bytes;
    }
    const auto [address, size] = *gap;
    gaps_.erase(gap);
    if (size > bytes) gaps_[address + bytes] = size - bytes;
    return address;
  }

  void free(std::int64_t address, std::int64_t bytes) {
    auto gap = gaps_.emplace(address, bytes).first;
    const auto next = std::next(gap);
    if (next != gaps_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap == gaps_.begin()) return;
    const auto before = std::prev(gap);
    if (before->first + before->second != gap->first) return;
    before->second += gap->second;
    gaps_.erase(gap);
  }

  // The first address, as of a GPU.
  static constexpr std::int64_t kStart = 0x7f00'0000'0000;
  std::int64_t bytes() const { return end_ - kStart; }

 private:
  std::map<std::int64_t, std::int64_t> gaps_;  // size by address
  std::int64_t end_ = kStart;
};

// Allocated part of a segment.
struct SnapshotBlock {
  std::int64_t address = 0, bytes = 0;
  std::size_t group = 0;
};

// Live memory of one group.
struct LiveGroup {
  TensorGroup group;
  std::vector<SnapshotBlock> blocks;  // in the order of allocation
};

// Returns a part of a segment, with the state that PyTorch gives it.
JsonValue block_json(std::int64_t bytes, bool is_active, JsonValue frames) {
  return json_object({{"size", bytes},
                      {"requested_size", is_active ? bytes : 0},
                      {"state", is_active ? "active_allocated" : "inactive"},
                      {"frames", std::move(frames)}});
}

// Keys are those of torch/cuda/_memory_viz.py and torch/csrc/cuda/Module.cpp.
class SnapshotOfStage {
 public:
  void visit(const MemoryEvent& event) {
    time_us_ = static_cast<std::int64_t>(std::llround(static_cast<double>(event.time) / 1e6));
    const std::int64_t bytes = std::llround(std::abs(event.bytes));
    if (bytes == 0) return;
    if (event.bytes > 0) {
      allocate(group_of(event.group), bytes);
    } else {
      free(group_of(event.group), bytes);
    }
  }

  // Returns the snapshot, with the stage as GPU 0.
  JsonValue take() {
    return json_object({{"segments", JsonValue::Array{segment_json()}},
                        {"device_traces", JsonValue::Array{std::move(events_)}}});
  }

 private:
  std::size_t group_of(const TensorGroup& group) {
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const LiveGroup& known) { return known.group == group; });
    const auto index = static_cast<std::size_t>(found - groups_.begin());
    if (index == groups_.size()) groups_.push_back({group, {}});
    return index;
  }

  // Returns the call stack of a group's allocations: its part of the model and its label.
  JsonValue frames_of(const SnapshotBlock& block) const {
    const TensorGroup& group = groups_[block.group].group;
    return JsonValue::Array{
        json_object({{"filename", group.part}, {"line", 0}, {"name", group.label}})};
  }

  JsonValue segment_json() const {
    std::vector<SnapshotBlock> live;
    for (const LiveGroup& group : groups_) {
      live.insert(live.end(), group.blocks.begin(), group.blocks.end());
    }
    std::sort(live.begin(), live.end(),
              [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
    JsonValue::Array blocks;
    std::int64_t address = Segment::kStart, allocated = 0;
    const auto add_gap = [&](std::int64_t end) {
      if (end > address) blocks.push_back(block_json(end - address, false, JsonValue::Array()));
    };
    for (const SnapshotBlock& block : live) {
      add_gap(block.address);
      blocks.push_back(block_json(block.bytes, true, frames_of(block)));
      address = block.address + block.bytes;
      allocated += block.bytes;
    }
    add_gap(Segment::kStart + segment_.bytes());
    return json_object({{"device", 0},
                        {"address", Segment::kStart},
                        {"total_size", segment_.bytes()},
                        {"allocated_size", allocated},
                        {"active_size", allocated},
                        {"requested_size", allocated},
                        {"stream", 0},
                        {"segment_type", "large"},
                        {"blocks", std::move(blocks)}});
  }

  void add_event(const char* action, const SnapshotBlock& block) {
    events_.push_back(
        event_json(action, block, name_of(groups_[block.group].group.category), frames_of(block)));
  }

  JsonValue event_json(const char* action, const SnapshotBlock& block, std::string_view category,
                       JsonValue frames) const {
    return json_object({{"action", action},
                        {"addr", block.address},
                        {"size", block.bytes},
                        {"stream", 0},
                        {"time_us", time_us_},
                        {"frames", std::move(frames)},
                        {"category", category}});
  }

  void allocate(std::size_t group, std::int64_t bytes) {
    const SnapshotBlock block{segment_.allocate(bytes), bytes, group};
    groups_[group].blocks.push_back(block);
    add_event("alloc", block);
  }

  void release(LiveGroup& group, std::size_t index) {
    const SnapshotBlock block = group.blocks[index];
    group.blocks.erase(group.blocks.begin() + static_cast<std::ptrdiff_t>(index));
    segment_.free(block.address, block.bytes);
    add_event("free_completed", block);
  }

  // Frees a block of this size, else the newest ones. A block that is larger shrinks.
  void free(std::size_t group, std::int64_t bytes) {
    std::vector<SnapshotBlock>& blocks = groups_[group].blocks;
    for (std::size_t i = blocks.size(); i-- > 0;) {
      if (blocks[i].bytes == bytes) return release(groups_[group], i);
    }
    while (bytes > 0) {
      LiveGroup* source = source_of(group);
      if (source == nullptr) return;
      const SnapshotBlock last = source->blocks.back();
      release(*source, source->blocks.size() - 1);
      if (last.bytes > bytes) allocate(last.group, last.bytes - bytes);
      bytes -= std::min(bytes, last.bytes);
    }
  }

  // Returns the group that memory of `group` is freed from: itself, else one of its category. The
  // framework does not keep all traced tensors: their memory is freed in advance by another group.
  LiveGroup* source_of(std::size_t group) {
    if (!groups_[group].blocks.empty()) return &groups_[group];
    LiveGroup* any = nullptr;
    for (LiveGroup& other : groups_) {
      if (other.blocks.empty()) continue;
      if (other.group.category == groups_[group].group.category) return &other;
      if (any == nullptr) any = &other;
    }
    return any;
  }

  Segment segment_;
  std::int64_t time_us_ = 0;
  std::vector<LiveGroup> groups_;
  // The viewer requires the category "unknown" if there are others.
  JsonValue::Array events_{event_json("snapshot", {}, "unknown", JsonValue::Array())};
};

}  // namespace

JsonValue predicted_snapshot(const Scenario& scenario, const Plan& plan, std::int64_t stage) {
  SnapshotOfStage snapshot;
  visit_memory(scenario, plan, stage, [&](const MemoryEvent& event) { snapshot.visit(event); });
  return snapshot.take();
}

}  // namespace tpsim::app
