#include "evidence/logs/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "evidence/logs/pickle.h"

namespace tpsim {
namespace {

std::int64_t number_at(const PickleValue& dict, std::string_view key) {
  const PickleValue* value = dict.find(key);
  const std::int64_t* number = value == nullptr ? nullptr : value->whole();
  return number == nullptr ? 0 : *number;
}

std::string text_at(const PickleValue& dict, std::string_view key) {
  const PickleValue* value = dict.find(key);
  const std::string* text = value == nullptr ? nullptr : value->text();
  return text == nullptr ? "" : *text;
}

const PickleValue::List& list_at(const PickleValue& dict, std::string_view key) {
  static const PickleValue::List kEmpty;
  const PickleValue* value = dict.find(key);
  const PickleValue::List* list = value == nullptr ? nullptr : value->list();
  return list == nullptr ? kEmpty : *list;
}

// "free" is the action of PyTorch 2.0; later versions write "free_requested" too, when the memory
// is still in use by a stream.
std::optional<SnapshotAction> action_called(std::string_view name) {
  if (name == "alloc") return SnapshotAction::kAlloc;
  if (name == "free" || name == "free_completed") return SnapshotAction::kFree;
  if (name == "segment_alloc" || name == "segment_map") return SnapshotAction::kSegmentAlloc;
  if (name == "segment_free" || name == "segment_unmap") return SnapshotAction::kSegmentFree;
  if (name == "oom") return SnapshotAction::kOutOfMemory;
  return std::nullopt;
}

// Reads one GPU of a snapshot.
class GpuReader {
 public:
  GpuReader(const PickleValue& root, std::int64_t gpu) : root_(root), gpu_(gpu) {}

  MemorySnapshot read() {
    for (const PickleValue* segment : list_at(root_, "segments")) {
      if (number_at(*segment, "device") == gpu_) add_segment(*segment);
    }
    const PickleValue::List& traces = list_at(root_, "device_traces");
    if (static_cast<std::size_t>(gpu_) < traces.size()) {
      const PickleValue::List* events = traces[static_cast<std::size_t>(gpu_)]->list();
      if (events != nullptr) add_events(*events);
    }
    return std::move(snapshot_);
  }

 private:
  void add_segment(const PickleValue& segment) {
    SnapshotSegment& added = snapshot_.segments.emplace_back();
    added.address = number_at(segment, "address");
    added.bytes = number_at(segment, "total_size");
    std::int64_t address = added.address;
    for (const PickleValue* block : list_at(segment, "blocks")) {
      const std::int64_t size = number_at(*block, "size");
      const bool is_active = text_at(*block, "state").starts_with("active");
      const std::int64_t requested = number_at(*block, "requested_size");
      if (is_active)
        added.blocks.push_back({address, requested > 0 ? requested : size, site_of(*block)});
      address += size;
    }
  }

  void add_events(const PickleValue::List& events) {
    for (const PickleValue* event : events) {
      const std::optional<SnapshotAction> action = action_called(text_at(*event, "action"));
      if (!action) continue;
      snapshot_.events.push_back({*action, number_at(*event, "addr"), number_at(*event, "size"),
                                  number_at(*event, "time_us"), site_of(*event)});
    }
  }

  // Call stacks are shared between the events of one site.
  std::size_t site_of(const PickleValue& owner) {
    const PickleValue* frames = owner.find("frames");
    if (frames == nullptr || list_at(owner, "frames").empty()) return kNoSite;
    const auto [known, is_new] = sites_.emplace(frames, snapshot_.sites.size());
    if (!is_new) return known->second;
    SnapshotSite& site = snapshot_.sites.emplace_back();
    for (const PickleValue* frame : *frames->list()) {
      site.push_back(
          {text_at(*frame, "filename"), number_at(*frame, "line"), text_at(*frame, "name")});
    }
    return known->second;
  }

  const PickleValue& root_;
  std::int64_t gpu_;
  MemorySnapshot snapshot_;
  std::unordered_map<const PickleValue*, std::size_t> sites_;
};

std::int64_t reserved_at_end(const MemorySnapshot& snapshot) {
  std::int64_t bytes = 0;
  for (const SnapshotSegment& segment : snapshot.segments) bytes += segment.bytes;
  return bytes;
}

// Returns the highest reserved memory from the event `first` to the end.
std::int64_t highest_reserved(const MemorySnapshot& snapshot, std::size_t first) {
  std::int64_t now = reserved_at_end(snapshot), most = now;
  for (std::size_t i = snapshot.events.size(); i > first; --i) {
    const SnapshotEvent& event = snapshot.events[i - 1];
    if (event.action == SnapshotAction::kSegmentAlloc) now -= event.bytes;
    if (event.action == SnapshotAction::kSegmentFree) now += event.bytes;
    most = std::max(most, now);
  }
  return most;
}

// Live memory by address.
using LiveBlocks = std::unordered_map<std::int64_t, SnapshotBlock>;

void apply(const SnapshotEvent& event, LiveBlocks& live) {
  if (event.action == SnapshotAction::kAlloc)
    live[event.address] = {event.address, event.bytes, event.site};
  if (event.action == SnapshotAction::kFree) live.erase(event.address);
}

// Returns what is allocated after the last event.
LiveBlocks blocks_after(const MemorySnapshot& snapshot) {
  LiveBlocks live;
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& block : segment.blocks) live[block.address] = block;
  }
  return live;
}

// Returns what was allocated before the first event.
LiveBlocks blocks_before(const MemorySnapshot& snapshot) {
  LiveBlocks live = blocks_after(snapshot);
  for (auto event = snapshot.events.rbegin(); event != snapshot.events.rend(); ++event) {
    if (event->action == SnapshotAction::kAlloc) live.erase(event->address);
    // The site of a free is where it is freed.
    if (event->action == SnapshotAction::kFree)
      live[event->address] = {event->address, event->bytes, kNoSite};
  }
  return live;
}

std::int64_t bytes_of(const LiveBlocks& live) {
  return std::accumulate(
      live.begin(), live.end(), std::int64_t{0},
      [](std::int64_t sum, const auto& block) { return sum + block.second.bytes; });
}

// Returns the number of events after which start-up has ended; 0: nothing of it was recorded.
std::size_t events_of_start_up(const MemorySnapshot& snapshot) {
  LiveBlocks kept = blocks_after(snapshot);
  const std::int64_t total = bytes_of(kept);
  std::int64_t later = 0;
  for (std::size_t i = snapshot.events.size(); i > 0; --i) {
    const SnapshotEvent& event = snapshot.events[i - 1];
    const auto block = kept.find(event.address);
    if (event.action != SnapshotAction::kAlloc || block == kept.end()) continue;
    later += block->second.bytes;
    kept.erase(block);
    if (later > total / 20) return i;
  }
  return 0;
}

struct PeakEvent {
  std::size_t events = 0;  // from the start of the recording
  std::int64_t bytes = 0;
};

// Returns the highest allocated memory after `first` to `last` events; `now` bytes are allocated
// after `first`.
PeakEvent highest_allocated(const MemorySnapshot& snapshot, std::size_t first, std::size_t last,
                            std::int64_t now) {
  PeakEvent most{first, now};
  for (std::size_t i = first; i < last; ++i) {
    const SnapshotEvent& event = snapshot.events[i];
    if (event.action == SnapshotAction::kAlloc) now += event.bytes;
    if (event.action == SnapshotAction::kFree) now -= event.bytes;
    if (now > most.bytes) most = {i + 1, now};
  }
  return most;
}

// Returns the innermost Python frame of the training program: PyTorch's own frames are skipped.
std::string site_text(const MemorySnapshot& snapshot, std::size_t site) {
  if (site == kNoSite) return "allocated before the recording, or without a call stack";
  const SnapshotFrame* chosen = nullptr;
  for (const SnapshotFrame& frame : snapshot.sites[site]) {
    if (!frame.file.ends_with(".py")) continue;
    const bool is_torch = frame.file.find("/torch/") != std::string::npos;
    if (chosen == nullptr || !is_torch) chosen = &frame;
    if (!is_torch) break;
  }
  if (chosen == nullptr) return "no Python frame (backward runs in C++)";
  const std::string name = chosen->file.substr(chosen->file.rfind('/') + 1);
  return fmt::format("{}:{} {}", name, chosen->line, chosen->function);
}

std::vector<SiteMemory> by_site(const MemorySnapshot& snapshot, const LiveBlocks& live) {
  std::map<std::string, SiteMemory> sites;
  std::unordered_map<std::size_t, SiteMemory*> known;
  for (const auto& [address, block] : live) {
    SiteMemory*& site = known[block.site];
    if (site == nullptr) {
      const std::string text = site_text(snapshot, block.site);
      site = &sites.try_emplace(text, SiteMemory{text, 0, {}}).first->second;
    }
    ++site->blocks;
    site->bytes += Bytes(static_cast<double>(block.bytes));
  }
  std::vector<SiteMemory> sorted;
  for (const auto& [text, site] : sites) sorted.push_back(site);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const SiteMemory& a, const SiteMemory& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::string_view name_of(SnapshotAction action) {
  switch (action) {
    case SnapshotAction::kAlloc: return "alloc";
    case SnapshotAction::kFree: return "free_completed";
    case SnapshotAction::kSegmentAlloc: return "segment_alloc";
    case SnapshotAction::kSegmentFree: return "segment_free";
    case SnapshotAction::kOutOfMemory: return "oom";
  }
  return "";
}

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const MemorySnapshot& snapshot) : snapshot_(snapshot) {}

  std::string text() {
    out_.begin_dict();
    out_.key("segments");
    out_.begin_list();
    for (const SnapshotSegment& segment : snapshot_.segments) put(segment);
    out_.end();
    out_.key("device_traces");
    out_.begin_list();
    out_.begin_list();
    // The viewer requires this category if there are others.
    put_event("snapshot", {.category = "unknown"});
    for (const SnapshotEvent& event : snapshot_.events) put_event(name_of(event.action), event);
    out_.end();
    out_.end();
    out_.end();
    return out_.take();
  }

 private:
  void put(std::string_view key, std::int64_t number) {
    out_.key(key);
    out_.whole(number);
  }
  void put(std::string_view key, std::string_view text) {
    out_.key(key);
    out_.text(text);
  }

  void put_frames(std::size_t site) {
    out_.key("frames");
    const auto known = numbers_.find(site);
    if (known != numbers_.end()) return out_.repeat(known->second);
    out_.begin_list();
    numbers_[site] = out_.number();
    if (site != kNoSite) {
      for (const SnapshotFrame& frame : snapshot_.sites[site]) {
        out_.begin_dict();
        put("filename", frame.file);
        put("line", frame.line);
        put("name", frame.function);
        out_.end();
      }
    }
    out_.end();
  }

  void put_block(std::int64_t bytes, std::string_view state, std::size_t site) {
    out_.begin_dict();
    put("size", bytes);
    put("requested_size", state == kInactive ? 0 : bytes);
    put("state", state);
    put_frames(site);
    out_.end();
  }

  void put(const SnapshotSegment& segment) {
    std::int64_t allocated = 0;
    for (const SnapshotBlock& block : segment.blocks) allocated += block.bytes;
    out_.begin_dict();
    put("device", 0);
    put("address", segment.address);
    put("total_size", segment.bytes);
    put("allocated_size", allocated);
    put("active_size", allocated);
    put("requested_size", allocated);
    put("stream", 0);
    put("segment_type", "large");
    out_.key("blocks");
    out_.begin_list();
    std::int64_t address = segment.address;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.address > address) put_block(block.address - address, kInactive, kNoSite);
      put_block(block.bytes, "active_allocated", block.site);
      address = block.address + block.bytes;
    }
    const std::int64_t left = segment.address + segment.bytes - address;
    if (left > 0) put_block(left, kInactive, kNoSite);
    out_.end();
    out_.end();
  }

  void put_event(std::string_view action, const SnapshotEvent& event) {
    out_.begin_dict();
    put("action", action);
    put("addr", event.address);
    put("size", event.bytes);
    put("stream", 0);
    put("time_us", event.time_us);
    put_frames(event.site);
    if (!event.category.empty()) put("category", event.category);
    out_.end();
  }

  static constexpr std::string_view kInactive = "inactive";
  const MemorySnapshot& snapshot_;
  PickleWriter out_;
  std::map<std::size_t, std::uint32_t> numbers_;
};

}  // namespace

Result<MemorySnapshot> read_memory_snapshot(std::string_view bytes, const std::string& file) {
  TPSIM_TRY(const Pickle pickle, read_pickle(bytes, file));
  const PickleValue& root = *pickle.root;
  if (root.find("segments") == nullptr || root.find("device_traces") == nullptr) {
    return bad_input("is not a memory snapshot: it lacks \"segments\" or \"device_traces\"", file,
                     "give a file that torch.cuda.memory._dump_snapshot() wrote");
  }
  std::optional<MemorySnapshot> fullest;
  const auto gpus = static_cast<std::int64_t>(list_at(root, "device_traces").size());
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    MemorySnapshot one = GpuReader(root, gpu).read();
    if (!fullest || reserved_at_end(one) > reserved_at_end(*fullest)) fullest = std::move(one);
  }
  if (!fullest || fullest->segments.empty()) {
    return bad_input("the snapshot contains no memory of a GPU", file,
                     "call _dump_snapshot() before the model is deleted");
  }
  if (fullest->events.empty()) {
    return bad_input("the snapshot contains no events", file,
                     "call torch.cuda.memory._record_memory_history() before the steps");
  }
  return std::move(*fullest);
}

std::string to_pickle(const MemorySnapshot& snapshot) { return SnapshotWriter(snapshot).text(); }

SnapshotPeak peak_of(const MemorySnapshot& snapshot) {
  SnapshotPeak peak;
  LiveBlocks live = blocks_before(snapshot);
  const auto& events = snapshot.events;
  const std::size_t first = events_of_start_up(snapshot);
  if (first > 0) {
    const PeakEvent start_up = highest_allocated(snapshot, 0, first, bytes_of(live));
    peak.start_up = Bytes(static_cast<double>(start_up.bytes));
  }
  for (std::size_t i = 0; i < first; ++i) apply(events[i], live);
  const PeakEvent top = highest_allocated(snapshot, first, events.size(), bytes_of(live));
  for (std::size_t i = first; i < top.events; ++i) apply(events[i], live);
  peak.live = by_site(snapshot, live);
  peak.allocated = Bytes(static_cast<double>(bytes_of(live)));
  for (std::size_t i = top.events; i < events.size(); ++i) {
    if (events[i].action == SnapshotAction::kFree) live.erase(events[i].address);
  }
  peak.kept = Bytes(static_cast<double>(bytes_of(live)));
  peak.reserved = Bytes(static_cast<double>(highest_reserved(snapshot, first)));
  for (const SnapshotEvent& event : events) {
    if (event.action == SnapshotAction::kOutOfMemory)
      peak.missing = Bytes(static_cast<double>(event.bytes));
  }
  peak.events = static_cast<std::int64_t>(events.size());
  return peak;
}

}  // namespace tpsim
