#include "sim/schedule/stage_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/schedule/stage_costs.h"

namespace tpsim {
namespace {

// Layers of a chunk with their lanes, in the order of forward.
struct LayerRun {
  LayerLanes lanes;
  std::int64_t count = 1;
};

std::vector<Phase> phases_of(SpanKind kind) {
  if (kind == SpanKind::kForward) return {Phase::kForward};
  if (kind == SpanKind::kWeightGradient) return {Phase::kWeightGradient};
  return {Phase::kRecompute, Phase::kBackward};
}

StreamSpan described(const LoweredLayer& program, const LaneSpan& lane) {
  using Kind = LoweredEvent::Kind;
  StreamSpan span;
  span.stream = lane.stream;
  if (lane.kind == Kind::kOp) {
    const LoweredOp& op = program.ops[lane.index];
    span.label = op.label.text;
    span.what = to_string(op.key);
    span.flops = op.repeats * op.flops;
    span.bytes = op.repeats * op.traffic * op.bytes;
  } else if (lane.kind == Kind::kCopy) {
    const LoweredCopy& copy = program.copies[lane.index];
    span.label = copy.label.text;
    span.what = "copy";
    span.bytes = copy.moved.value();
  } else {
    const LoweredCollective& call = program.collectives[lane.index];
    span.label = call.label.text;
    span.what = fmt::format("{} of the {} group", name_of(call.kind), name_of(call.group));
    span.bytes = static_cast<double>(call.bytes);
    span.ranks = call.ranks;
  }
  return span;
}

// Appends the spans of a phase that starts at `start`.
void add_phase(std::vector<StreamSpan>& spans, const LayerLanes& lanes, Phase which,
               const TimelineSpan& task, Seconds start) {
  const auto placed = [&](Seconds time) { return task.begin + to_picoseconds(start + time); };
  for (const LaneSpan& lane : lanes.phase(which).spans) {
    if (lane.end <= lane.begin) continue;
    StreamSpan span = described(lanes.program, lane);
    span.stage = task.stage;
    span.chunk = task.chunk;
    span.task = task.kind;
    span.begin = placed(lane.begin);
    span.end = placed(lane.end);
    span.exposed = to_picoseconds(lane.exposed);
    if (lane.issued >= Seconds()) span.issued = placed(lane.issued);
    if (lane.needed >= Seconds()) span.needed = placed(lane.needed);
    spans.push_back(std::move(span));
  }
}

}  // namespace

std::vector<StreamSpan> stream_spans(LayerPricer& pricer, const Plan& plan,
                                     const Timeline& timeline, std::optional<std::int64_t> stage) {
  const StageCut cut = stage_cut(plan.stage_layers, plan.degrees.pp, pricer.scenario().model);
  std::vector<std::vector<LayerRun>> chunks;
  for (const ChunkKind& kind : cut.chunks) {
    std::vector<LayerRun>& layers = chunks.emplace_back();
    for (const ChunkLayer& layer : chunk_layers(pricer.scenario(), plan, kind)) {
      layers.push_back({pricer.lanes(layer.kind, plan_of(layer, plan), layer.block), layer.count});
    }
  }
  std::vector<const StageKind*> stages;
  for (const StageRun& run : cut.runs) {
    stages.insert(stages.end(), static_cast<std::size_t>(run.count),
                  &cut.stages[static_cast<std::size_t>(run.kind)]);
  }
  std::vector<StreamSpan> spans;
  for (const TimelineSpan& task : timeline.spans) {
    if (!is_task(task.kind) || task.micro_batch != 0) continue;
    if (stage && task.stage != *stage) continue;
    const StageKind& kind = *stages[static_cast<std::size_t>(task.stage)];
    const std::int64_t local = task.chunk / plan.degrees.pp;  // of the chunks of the stage
    const std::int32_t chunk = kind.chunks[static_cast<std::size_t>(local)];
    const std::vector<LayerRun>& layers = chunks[static_cast<std::size_t>(chunk)];
    Seconds start;
    const auto add = [&](const LayerRun& layer) {
      for (std::int64_t i = 0; i < layer.count; ++i) {
        for (const Phase phase : phases_of(task.kind)) {
          add_phase(spans, layer.lanes, phase, task, start);
          start += layer.lanes.phase(phase).end;
        }
      }
    };
    if (task.kind == SpanKind::kForward) {
      std::for_each(layers.begin(), layers.end(), add);
    } else {
      std::for_each(layers.rbegin(), layers.rend(), add);
    }
  }
  return spans;
}

}  // namespace tpsim
