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

// Live memory of one group.
struct LiveGroup {
  TensorGroup group;
  std::vector<SnapshotBlock> blocks;  // in the order of allocation
};

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

  MemorySnapshot take() {
    SnapshotSegment& segment =
        snapshot_.segments.emplace_back(SnapshotSegment{Segment::kStart, segment_.bytes(), {}});
    for (const LiveGroup& group : groups_) {
      segment.blocks.insert(segment.blocks.end(), group.blocks.begin(), group.blocks.end());
    }
    std::sort(segment.blocks.begin(), segment.blocks.end(),
              [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
    return std::move(snapshot_);
  }

 private:
  // The site of a group has its index.
  std::size_t group_of(const TensorGroup& group) {
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const LiveGroup& known) { return known.group == group; });
    if (found == groups_.end()) {
      groups_.push_back({group, {}});
      snapshot_.sites.push_back({{std::string(group.part), 0, std::string(group.label)}});
      return groups_.size() - 1;
    }
    return static_cast<std::size_t>(found - groups_.begin());
  }

  void add_event(SnapshotAction action, const SnapshotBlock& block) {
    snapshot_.events.push_back({action, block.address, block.bytes, time_us_, block.site,
                                name_of(groups_[block.site].group.category)});
  }

  void allocate(std::size_t group, std::int64_t bytes) {
    const SnapshotBlock block{segment_.allocate(bytes), bytes, group};
    groups_[group].blocks.push_back(block);
    add_event(SnapshotAction::kAlloc, block);
  }

  void release(LiveGroup& group, std::size_t index) {
    const SnapshotBlock block = group.blocks[index];
    group.blocks.erase(group.blocks.begin() + static_cast<std::ptrdiff_t>(index));
    segment_.free(block.address, block.bytes);
    add_event(SnapshotAction::kFree, block);
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
      if (last.bytes > bytes) allocate(last.site, last.bytes - bytes);
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
  MemorySnapshot snapshot_;
};

}  // namespace

MemorySnapshot predicted_snapshot(const Scenario& scenario, const Plan& plan, std::int64_t stage) {
  SnapshotOfStage snapshot;
  visit_memory(scenario, plan, stage, [&](const MemoryEvent& event) { snapshot.visit(event); });
  return snapshot.take();
}

}  // namespace tpsim::app
