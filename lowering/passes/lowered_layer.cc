#include "lowering/passes/lowered_layer.h"

#include <cmath>

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

Kind kind_of(ProgramEvent::Kind kind) {
  switch (kind) {
    case ProgramEvent::Kind::kOp: return Kind::kOp;
    case ProgramEvent::Kind::kCollective: return Kind::kCollective;
    case ProgramEvent::Kind::kAllocate: return Kind::kAllocate;
    case ProgramEvent::Kind::kFree: break;
  }
  return Kind::kFree;
}

template <class Record>
LoweredEvent append(std::vector<Record>& records, const Record& record, Kind kind) {
  records.push_back(record);
  return {kind, false, static_cast<std::uint32_t>(records.size() - 1)};
}

// An allocation that no traced event makes, and its events at the start and the end of its life.
struct Added {
  LoweredEvent from, to;
};
Added added_memory(LoweredLayer& layer, double bytes, const char* label,
                   MemoryCategory category = MemoryCategory::kActivations) {
  const bool is_more = bytes > 0;
  LoweredAllocation made;
  made.bytes = std::llround(std::abs(bytes));
  made.category = category;
  made.label = label;
  made.is_traced = false;
  const LoweredEvent from =
      append(layer.allocations, made, is_more ? Kind::kAllocate : Kind::kFree);
  return {from, {is_more ? Kind::kFree : Kind::kAllocate, false, from.index}};
}

void put(LoweredLayer& layer, Moment moment, const LoweredEvent& event) {
  std::vector<LoweredEvent>& events = layer.phase(moment.phase).events;
  events.insert(moment.edge == Moment::Edge::kStart ? events.begin() : events.end(), event);
}

}  // namespace

Stream stream_of(const LoweredCollective& record) {
  if (record.mover == Mover::kCopyEngine) return Stream::kCopy;
  if (record.label.part == ModelPart::kDispatch) return Stream::kExpert;
  switch (record.group) {
    case GroupKind::kTensor:
    case GroupKind::kExpertTensor: return Stream::kTensor;
    case GroupKind::kContext: return Stream::kContext;
    case GroupKind::kExpert: return Stream::kExpert;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding: return Stream::kPipeline;
    case GroupKind::kData:
    case GroupKind::kExpertData:
    case GroupKind::kModel:
    case GroupKind::kWorld: break;
  }
  return Stream::kData;
}

AllocationRounding allocation_rounding(const StackSpec& stack) {
  const Bytes granularity = stack.memory.allocation_granularity;
  const bool caches = granularity > Bytes(1);
  return {granularity, caches && !stack.parts.expandable_segments};
}

double allocated_bytes(const LoweredAllocation& made, const AllocationRounding& rounding) {
  // kMinLargeAlloc, kRoundLarge and kSmallSize of c10/cuda/CUDACachingAllocator.cpp: a request of
  // 10 MiB gets a segment of whole 2 MiB. The rest of the segment is split off if it exceeds 1 MiB.
  constexpr double kLargeRequest = 10 * kMiB, kSegmentUnit = 2 * kMiB, kSmallestRest = kMiB;
  const auto bytes = static_cast<double>(made.bytes);
  if (!made.is_traced) return bytes;
  const auto rounded_to = [&](double unit) { return std::ceil(bytes / unit) * unit; };
  const double block = rounded_to(rounding.granularity.value());
  if (!rounding.whole_segments || block < kLargeRequest) return block;
  const double segment = rounded_to(kSegmentUnit);
  return segment - block > kSmallestRest ? block : segment;
}

LoweredLayer as_traced(LayerKind kind, const LayerTrace& trace) {
  const Program& program = trace.program;
  LoweredLayer layer;
  layer.kind = kind;
  const auto copy = [](auto& lowered, const auto& traced) {
    lowered.reserve(2 * traced.size());  // passes add records
    for (const auto& record : traced) lowered.push_back({record});
  };
  copy(layer.ops, program.ops);
  copy(layer.collectives, program.collectives);
  copy(layer.allocations, program.allocations);
  for (const Phase phase : all_of<Phase>()) {
    const auto [begin, end] = trace.span(phase);
    std::vector<LoweredEvent>& events = layer.phase(phase).events;
    events.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      events.push_back({kind_of(program.events[i].kind), true, program.events[i].index});
    }
  }
  for (std::size_t i = trace.span(Phase::kBackward).begin; i < trace.recompute_end; ++i) {
    if (program.events[i].kind != ProgramEvent::Kind::kOp) continue;
    layer.ops[program.events[i].index].runs_again = true;
  }
  return layer;
}

LoweredEvent added(LoweredLayer& layer, const LoweredOp& op) {
  return append(layer.ops, op, Kind::kOp);
}
LoweredEvent added(LoweredLayer& layer, const LoweredCollective& collective) {
  return append(layer.collectives, collective, Kind::kCollective);
}
LoweredEvent added(LoweredLayer& layer, const LoweredCopy& copy) {
  return append(layer.copies, copy, Kind::kCopy);
}
LoweredEvent added(LoweredLayer& layer, const HostWork& work) {
  return append(layer.host, work, Kind::kHost);
}

void hold(LoweredLayer& layer, Moment from, Moment to, double bytes, const char* label,
          MemoryCategory category) {
  if (bytes == 0) return;
  const Added memory = added_memory(layer, bytes, label, category);
  put(layer, from, memory.from);
  put(layer, to, memory.to);
}

void hold(LoweredLayer& layer, std::vector<LoweredEvent>& events, Moment to, double bytes,
          const char* label) {
  if (bytes == 0) return;
  const Added memory = added_memory(layer, bytes, label);
  events.push_back(memory.from);
  put(layer, to, memory.to);
}

bool keeps_saved_tensors(const LoweredLayer& layer, const Plan& plan, Phase phase) {
  if (layer.kind != LayerKind::kBlock) return phase == Phase::kForward;
  return phase == (plan.recompute == Recompute::kFull ? Phase::kBackward : Phase::kForward);
}

}  // namespace tpsim
