// Memory snapshots of PyTorch: the pickle that torch.cuda.memory._dump_snapshot() writes and
// pytorch.org/memory_viz shows. Written for a prediction, and read from a real run.
//
// Keys are those of torch/cuda/_memory_viz.py and torch/csrc/cuda/Module.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace tpsim {

struct SnapshotFrame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
};

// The call stack of the allocation, innermost frame first. Empty: not recorded.
using SnapshotSite = std::vector<SnapshotFrame>;
inline constexpr std::size_t kNoSite = ~std::size_t{0};

enum class SnapshotAction : std::uint8_t {
  kAlloc,
  kFree,
  kSegmentAlloc,
  kSegmentFree,
  kOutOfMemory,
};

struct SnapshotEvent {
  SnapshotAction action{};
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t time_us = 0;
  std::size_t site = kNoSite;      // index into MemorySnapshot::sites
  std::string_view category = {};  // of a written snapshot; colors the picture
};

// Allocated part of a segment.
struct SnapshotBlock {
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::size_t site = kNoSite;
};

// Memory that the allocator holds, with what is allocated at the end of the recording.
struct SnapshotSegment {
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::vector<SnapshotBlock> blocks;  // by address
};

// One GPU.
struct MemorySnapshot {
  std::vector<SnapshotSite> sites;
  std::vector<SnapshotSegment> segments;
  std::vector<SnapshotEvent> events;  // in order of time
};

// Reads the GPU with the most memory. `file` is only used in error messages.
Result<MemorySnapshot> read_memory_snapshot(std::string_view bytes, const std::string& file);

// Returns the bytes of the pickle, with the snapshot as GPU 0.
std::string to_pickle(const MemorySnapshot& snapshot);

// Memory that was allocated by one site.
struct SiteMemory {
  std::string site;  // "attention.py:120 forward"; or why it is unknown
  std::int64_t blocks = 0;
  Bytes bytes;
};

// Memory after start-up, which ends when 95 % of the memory that is kept until the recording ends
// has been allocated: weights and optimizer state. Before, a model may exist unsharded.
struct SnapshotPeak {
  Bytes allocated;               // highest, as torch.cuda.max_memory_allocated()
  Bytes reserved;                // highest, as torch.cuda.max_memory_reserved()
  Bytes kept;                    // part of `allocated` that is not freed until the recording ends
  Bytes missing;                 // size of a request that ran out of memory; 0: none did
  Bytes start_up;                // highest allocated memory before; 0: recorded after start-up
  std::int64_t events = 0;       // number of recorded events, those of start-up included
  std::vector<SiteMemory> live;  // contents of `allocated`, largest first
};
SnapshotPeak peak_of(const MemorySnapshot& snapshot);

}  // namespace tpsim
