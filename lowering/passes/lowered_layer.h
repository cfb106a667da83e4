// A layer of one rank as a framework runs it, for one micro-batch or at the end of a step: its
// kernels, collectives, copies, host work and memory in order. lower() and lower_step_end() make it
// from the trace of the reference model by passes (lower.h). Prices, memory, `tpsim explain
// --program` and `tpsim validate` read it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/units.h"
#include "core/program/program.h"
#include "core/software/stack_parts.h"
#include "lowering/trace/trace.h"

namespace tpsim {

// The stream of a GPU on which an event runs. Streams are first in, first out.
enum class Stream : std::uint8_t {
  kCompute,
  kTensor,
  kContext,
  kExpert,
  kData,
  kPipeline,
  kCopy,
  kHost
};
template <>
inline constexpr auto kEnumNames<Stream> =
    words<8>("compute tensor context expert data pipeline copy host");

// The kernels of an op. `key`, `flops` and `bytes` describe the kernel that a profile measures.
struct LoweredOp : OpRecord {
  double traffic = 1;         // memory traffic of the framework's kernels over that of the record
  std::int64_t launches = 1;  // number of kernels
  double uncalibrated = 1;    // factor on the time that no setting explains
  double repeats = 1;         // how often the rank does the work of the record
  double load = 1;            // tokens of the busiest rank over the mean
  bool runs_again = false;    // an op of forward in the backward of full recompute
  Seconds issue = {};         // host time of one launch; 0 if a CUDA graph replays the kernel
  AttentionKernel attention = {};  // flash attention only
};

// The part of the GPU that moves the bytes of a collective.
enum class Mover : std::uint8_t {
  kProcessors,  // kernels on multiprocessors, which slow concurrent ops and are slowed by them
  kCopyEngine,
};
template <>
inline constexpr auto kEnumNames<Mover> = words<2>("processors copy_engine");

// Calls of one collective. `bytes` are those of one call.
struct LoweredCollective : CollectiveRecord {
  double calls = 1;
  // Instead of a collective: bytes of a copy over the host link, or of passes over host memory.
  double copied = 0, passed = 0;
  double load = 1;     // tokens of the busiest rank over the mean
  Seconds issue = {};  // host time of all calls
  Mover mover = Mover::kProcessors;
  // Starts in one layer, or micro-batch, and ends in the next: at the start of a phase, the
  // collective of the layer before is in flight.
  bool is_carried = false;
  DataParallelSync sync = DataParallelSync::kReduceScatter;  // of gradient and weight slices
  Dispatcher dispatcher = Dispatcher::kAllToAll;             // of tokens in the expert group
};

Stream stream_of(const LoweredCollective& record);

// A pass over memory that is not an op of the trace, such as a cast or a copy.
struct LoweredCopy {
  Label label;
  Bytes moved;  // read and written
  double kernels = 1;
  bool adds_latency = false;  // small kernels also take the latency of a kernel each
  Seconds issue = {};         // host time of all kernels
};

// Work of the host between launches.
struct HostWork {
  const char* label = "";
  Seconds busy = {};
  bool synchronizes = false;  // first waits until the device is idle, plus `latency`
  Seconds latency = {};
};

struct LoweredAllocation : AllocationRecord {
  bool is_traced = true;  // the caching allocator rounds traced sizes up
};

// How the allocator rounds the size of a tensor.
struct AllocationRounding {
  Bytes granularity = Bytes(1);
  // A large block keeps a small rest of its segment, as in PyTorch without expandable segments.
  bool whole_segments = false;
};
// Returns the rounding of activations.
AllocationRounding allocation_rounding(const StackSpec& stack);

// Returns the size in the memory of the GPU.
double allocated_bytes(const LoweredAllocation& made, const AllocationRounding& rounding);

struct LoweredEvent {
  enum class Kind : std::uint8_t {
    kOp,
    kCollective,  // the compute stream waits meanwhile; calls in flight go on
    kStart,       // starts a collective on its stream
    kWait,        // the compute stream waits for a started collective
    kCopy,
    kHost,
    kAllocate,
    kFree,
  } kind{};
  // Whether the event is the first one of a traced event. Passes put the others between.
  bool is_first = true;
  std::uint32_t index = 0;  // into the vector of LoweredLayer for this kind
};

struct LoweredPhase {
  std::vector<LoweredEvent> events;
  Seconds host_per_event = {};  // host time before each first event, besides launches
};

struct LoweredLayer {
  LayerKind kind{};
  std::vector<LoweredOp> ops;
  std::vector<LoweredCollective> collectives;
  std::vector<LoweredCopy> copies;
  std::vector<HostWork> host;
  std::vector<LoweredAllocation> allocations;
  std::array<LoweredPhase, kPhaseCount> phases;

  LoweredPhase& phase(Phase which) { return phases[static_cast<std::size_t>(which)]; }
  const LoweredPhase& phase(Phase which) const { return phases[static_cast<std::size_t>(which)]; }
};

// Returns the traced layer without changes.
LoweredLayer as_traced(LayerKind kind, const LayerTrace& trace);

// Return an event for a record that is added to the layer. The event is not first.
LoweredEvent added(LoweredLayer& layer, const LoweredOp& op);
LoweredEvent added(LoweredLayer& layer, const LoweredCollective& collective);
LoweredEvent added(LoweredLayer& layer, const LoweredCopy& copy);
LoweredEvent added(LoweredLayer& layer, const HostWork& work);
// Returns the event of the same collective with another kind.
inline LoweredEvent with_kind(LoweredEvent event, LoweredEvent::Kind kind) {
  event.kind = kind;
  event.is_first = event.is_first && kind != LoweredEvent::Kind::kWait;
  return event;
}

// The first or last moment of a phase.
struct Moment {
  Phase phase{};
  enum class Edge : std::uint8_t { kStart, kEnd } edge{};
};
inline constexpr Moment kForwardStart{Phase::kForward, Moment::Edge::kStart};
inline constexpr Moment kForwardEnd{Phase::kForward, Moment::Edge::kEnd};
inline constexpr Moment kRecomputeStart{Phase::kRecompute, Moment::Edge::kStart};
inline constexpr Moment kBackwardStart{Phase::kBackward, Moment::Edge::kStart};
inline constexpr Moment kBackwardEnd{Phase::kBackward, Moment::Edge::kEnd};

// Adds memory that is allocated at `from` and freed at `to`. Negative bytes: traced memory that the
// framework frees at `from` and allocates at `to`.
void hold(LoweredLayer& layer, Moment from, Moment to, double bytes, const char* label,
          MemoryCategory category = MemoryCategory::kActivations);
// The same with `from` at the end of `events`, which become those of a phase. `to` may be in
// another phase only.
void hold(LoweredLayer& layer, std::vector<LoweredEvent>& events, Moment to, double bytes,
          const char* label);

// Whether tensors that forward ops of this phase save stay allocated until the end of backward.
// With full recompute of a block, its forward runs again in backward.
bool keeps_saved_tensors(const LoweredLayer& layer, const Plan& plan, Phase phase);

// Replaces the events of a phase. `replace(event, events)` is called with each event in order and
// appends what replaces it to `events`. Memory that it holds until the end of the phase is freed
// after all events.
template <class Replace>
void rewrite(LoweredLayer& layer, Phase phase, Replace replace) {
  const std::vector<LoweredEvent> old = std::exchange(layer.phase(phase).events, {});
  if (old.empty()) return;
  std::vector<LoweredEvent> events;
  events.reserve(2 * old.size());
  for (const LoweredEvent& event : old) replace(event, events);
  std::vector<LoweredEvent>& held = layer.phase(phase).events;
  events.insert(events.end(), held.begin(), held.end());
  held = std::move(events);
}

// Calls `use` with each op of a phase.
template <class Use>
void for_each_op(LoweredLayer& layer, Phase phase, Use use) {
  for (const LoweredEvent& event : layer.phase(phase).events) {
    if (event.kind == LoweredEvent::Kind::kOp) use(layer.ops[event.index]);
  }
}
template <class Use>
void for_each_op(const LoweredLayer& layer, Phase phase, Use use) {
  for (const LoweredEvent& event : layer.phase(phase).events) {
    if (event.kind == LoweredEvent::Kind::kOp) use(layer.ops[event.index]);
  }
}

}  // namespace tpsim
