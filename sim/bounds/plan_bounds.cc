#include "sim/bounds/plan_bounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/normal.h"
#include "sim/bounds/step_end_bounds.h"
#include "sim/step/predict.h"

namespace tpsim {
namespace {

// The simulation rounds times to picoseconds; this tolerance covers the sums of rounded times.
constexpr double kRounding = 1 - 1e-9;

// Tolerance for rounding to a whole number of blocks.
constexpr double kRoundingOfCounts = 1e-6;

// Micro-batches in flight on a stage, summed over its chunks: their number, and their number
// weighted with the blocks of the chunk.
struct InFlight {
  double chunks = 0, blocks = 0;
};
InFlight in_flight(const StageCut& cut, const StageKind& stage,
                   std::span<const std::int32_t> by_kind) {
  InFlight held;
  for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
    const auto n = static_cast<double>(by_kind[kind]);
    held.chunks += n;
    held.blocks +=
        n * static_cast<double>(cut.chunks[static_cast<std::size_t>(stage.kinds[kind])].blocks);
  }
  return held;
}

}  // namespace

PlanBounds::Family& PlanBounds::family_of(const Plan& plan) {
  const LayerKey key = chunk_key(plan, pricer_.scenario());
  Family& family = families_[key.zero < 2 ? 0 : static_cast<std::size_t>(key.zero - 1)];
  if (family.number > 0 && family.key == key) return family;
  family.key = key;
  ++family.number;
  const ModelSpec& model = pricer_.scenario().model;
  const std::int64_t beginnings = model.block_kinds.empty() ? 1 : model.layers + 1;
  family.chunks.resize(4 * static_cast<std::size_t>(beginnings * (model.layers + 1)));
  family.partial.clear();
  return family;
}

PlanBounds::Chunk& PlanBounds::chunk_of(Family& family, const Plan& plan,
                                        const ChunkKind& kind) const {
  const std::size_t ends = (kind.is_first ? 2U : 0U) + (kind.is_last ? 1U : 0U);
  const std::int64_t lengths = pricer_.scenario().model.layers + 1;
  const std::size_t index =
      4 * static_cast<std::size_t>(kind.first_layer * lengths + kind.blocks) + ends;
  if (plan.recompute != Recompute::kBlocks) return family.chunks[index];
  const auto recomputed = static_cast<std::size_t>(recomputed_blocks(plan, kind.blocks));
  return family.partial[static_cast<std::int64_t>(recomputed * family.chunks.size() + index)];
}

const ChunkMemory& PlanBounds::memory_of(const Plan& plan, const ChunkKind& kind) {
  Chunk& chunk = chunk_of(*family_, plan, kind);
  if (chunk.memory_of != family_->number) {
    chunk.memory = with_transfers(chunk_memory(pricer_, plan, kind), kind, transfer_.bytes);
    chunk.memory_of = family_->number;
  }
  return chunk.memory;
}

PlanBounds::Chunk& PlanBounds::times_of(const Plan& plan, const ChunkKind& kind) {
  Chunk& chunk = chunk_of(*family_, plan, kind);
  if (chunk.times_of != family_->number) {
    chunk.times = chunk_times(pricer_, plan, kind);
    chunk.times_of = family_->number;
    chunk.pass_among = 0;
  }
  return chunk;
}

const PassTimes& PlanBounds::pass_of(Chunk& chunk, std::int64_t chunks) const {
  if (chunk.pass_among != chunks) {
    chunk.pass = pass_times(pricer_.scenario().stack, chunk.times, chunks);
    chunk.pass_among = chunks;
  }
  return chunk.pass;
}

PlanBounds::Fixed& PlanBounds::fixed_of(const Plan& plan) {
  const LayerKey key = fixed_key(LayerKind::kWordEmbeddings, plan, pricer_.scenario());
  Fixed& fixed = fixed_[static_cast<std::size_t>(plan.zero)];
  if (fixed.number > 0 && fixed.key == key) return fixed;
  fixed.key = key;
  fixed.of_layers = fixed_costs(pricer_, plan);
  ++fixed.number;
  fixed.stages.resize(4 * static_cast<std::size_t>(pricer_.scenario().model.layers + 1));
  fixed.of.resize(fixed.stages.size());
  return fixed;
}

const FixedCost& PlanBounds::stage_total(Fixed& fixed, const StageKind& stage) const {
  const ModelSpec& model = pricer_.scenario().model;
  if (!model.block_kinds.empty()) {
    auto& [number, total] = fixed.of_stages[&stage];
    if (number != fixed.number) total = stage_fixed(fixed.of_layers, model, stage);
    number = fixed.number;
    return total;
  }
  const std::size_t ends = (stage.is_first ? 2U : 0U) + (stage.is_last ? 1U : 0U);
  const std::size_t index = 4 * static_cast<std::size_t>(stage.blocks) + ends;
  if (fixed.of[index] != fixed.number) {
    fixed.stages[index] = stage_fixed(fixed.of_layers, model, stage);
    fixed.of[index] = fixed.number;
  }
  return fixed.stages[index];
}

void PlanBounds::prepare(const Plan& plan, const StageCut& cut) {
  family_ = &family_of(plan);
  Fixed& fixed = fixed_of(plan);
  stage_fixed_.clear();
  for (const StageKind& stage : cut.stages) stage_fixed_.push_back(&stage_total(fixed, stage));
  transfer_ = plan.degrees.pp > 1 ? pricer_.transfer(plan) : TransferCost{};
  overheads_ =
      memory_overheads(pricer_.scenario().stack.memory, plan, gradient_stand_ins(fixed.of_layers));
}

PlanBounds::Value PlanBounds::evaluate(const Plan& plan, const StageCut& cut, Bytes limit) {
  prepare(plan, cut);
  const Bytes highest = peak(plan, cut, limit);
  if (highest > limit) return {highest, Seconds(), Seconds()};
  const Seconds least = step(plan, cut);
  return {highest, least, mean_busy(plan, cut)};
}

PlanBounds::Value PlanBounds::times(const Plan& plan, const StageCut& cut) {
  prepare(plan, cut);
  const Seconds least = step(plan, cut);
  return {Bytes(), least, mean_busy(plan, cut)};
}

bool PlanBounds::fits_hosts(const Plan& plan, const StageCut& cut) {
  prepare(plan, cut);
  Bytes most;
  for (const FixedCost* fixed : stage_fixed_) most = std::max(most, fixed->host);
  const ClusterSpec& cluster = pricer_.scenario().cluster;
  return host_memory_of_node(cluster, plan, most) <= cluster.host.memory;
}

bool PlanBounds::fits(const Plan& plan, const StageCut& cut, Bytes limit) {
  prepare(plan, cut);
  return peak(plan, cut, limit) <= limit;
}

const PeakMoments& PlanBounds::moments_of(const Plan& plan, const StageKind& kind,
                                          std::int64_t stage, std::size_t slot) {
  const PipelineShape shape = pipeline_shape(plan);
  const MomentsKey key{&kind, splits_backward(plan.schedule) ? stage : -1,
                       PeakMoments::deciding_micro_batches(shape, stage)};
  if (recent_moments_.size() <= slot) recent_moments_.resize(slot + 1);
  auto& [recent_key, recent] = recent_moments_[slot];
  if (recent_key == key) return *recent;
  auto found = moments_.find(key);
  if (found == moments_.end()) {
    found = moments_.emplace(key, PeakMoments(shape, stage, kind)).first;
  }
  recent_key = key;
  recent = &found->second;
  return *recent;
}

Bytes PlanBounds::stage_peak(const Plan& plan, const StageCut& cut, std::size_t kind,
                             std::int64_t stage_index) {
  const StageKind& stage = cut.stages[kind];
  stage_chunks_.clear();
  for (const std::int32_t chunk : stage.kinds) {
    stage_chunks_.push_back(&memory_of(plan, cut.chunks[static_cast<std::size_t>(chunk)]));
  }
  const FixedCost& fixed = *stage_fixed_[kind];
  const StackSpec& stack = pricer_.scenario().stack;
  const StepHabits habits = step_habits(stack, plan);
  const TensorPeak peak =
      tensor_peak(fixed, stage_chunks_, moments_of(plan, stage, stage_index, kind), habits);
  return stage_memory(stack.memory, habits, overheads_, fixed.held, peak).total();
}

// Only the first stage of each kind matters: later ones have fewer micro-batches in flight. With a
// split backward more micro-batches await their weight gradients on later stages.
Bytes PlanBounds::peak(const Plan& plan, const StageCut& cut, Bytes limit) {
  Bytes most;
  for (const FixedCost* fixed : stage_fixed_) most = std::max(most, Bytes(total(fixed->held)));
  for (std::size_t kind = 0; kind < cut.stages.size() && most <= limit; ++kind) {
    most = std::max(most, stage_peak(plan, cut, kind, cut.stages[kind].first_stage));
  }
  if (!splits_backward(plan.schedule)) return most;
  std::int64_t stage = 0;
  for (const StageRun& run : cut.runs) {
    for (const std::int64_t end = stage + run.count; stage < end && most <= limit; ++stage) {
      most = std::max(most, stage_peak(plan, cut, static_cast<std::size_t>(run.kind), stage));
    }
  }
  return most;
}

// Solves for the number of recomputed blocks at which the saved activations in flight fit. Ignores
// the memory of the running task. Each recomputed block is assumed to save the same amount, and
// chunks with fewer blocks save less, so the result is a lower bound.
std::int64_t PlanBounds::least_recomputed_blocks(const Plan& plan, const StageCut& cut,
                                                 Bytes limit) {
  prepare(plan, cut);
  const auto left_by = [&](bool recomputes, std::int64_t kind) {
    const Plan whole = with_whole_recompute(plan, recomputes);
    return total(pricer_.layer_memory(LayerKind::kBlock, whole, kind)[TaskKind::kForward].left);
  };
  // With several kinds of blocks, uses the smallest saved activations and the largest saving.
  double kept = left_by(false, 0);
  double saved = kept - left_by(true, 0);
  for (std::int64_t kind = 1; kind < block_kind_count(pricer_.scenario().model); ++kind) {
    kept = std::min(kept, left_by(false, kind));
    saved = std::max(saved, left_by(false, kind) - left_by(true, kind));
  }
  if (saved <= 0) return 1;
  const StackMemory& stack = pricer_.scenario().stack.memory;
  const Bytes room = limit - stack.context - overheads_.workspace - overheads_.buffers;
  double least = 1;
  for (std::size_t i = 0; i < cut.stages.size(); ++i) {
    const PeakMoments& moments = moments_of(plan, cut.stages[i], cut.stages[i].first_stage, i);
    for (std::size_t k = 0; k < moments.size(); ++k) {
      const InFlight held = in_flight(cut, cut.stages[i], moments.in_flight(k));
      if (held.chunks == 0) continue;
      const BytesByCategory& fixed = stage_fixed_[i]->held;
      const bool without = step_habits(pricer_.scenario().stack, plan).frees_gradients;
      const double gradients = without ? fixed[memory_index::kGradients] : 0;
      const double over = total(fixed) - gradients + held.blocks * kept - room.value();
      least = std::max(least, over / (held.chunks * saved));
    }
  }
  return static_cast<std::int64_t>(std::ceil(least - kRoundingOfCounts));
}

// Returns the bounds of one stage that follow from its own work.
PlanBounds::StageBound PlanBounds::bound_of(const Plan& plan, const StageCut& cut,
                                            std::size_t kind_of_stage) {
  const StageKind& stage = cut.stages[kind_of_stage];
  const StackSpec& stack = pricer_.scenario().stack;
  const auto m = static_cast<double>(micro_batches(plan));
  const P2pHabits p2p = p2p_habits(stack, plan.virtual_stages);
  StageBound bound;
  Seconds last;  // tasks that compute the last weight gradients
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const ChunkKind& kind = cut.chunks[static_cast<std::size_t>(stage.chunks[i])];
    Chunk& chunk = times_of(plan, kind);
    PassTimes pass = pass_of(chunk, std::ssize(stage.chunks));
    if (!kind.is_first) pass[TaskKind::kForward] += transfer_.gather;
    if (!kind.is_last) pass[TaskKind::kBackward] += transfer_.gather;
    if (i == 0) bound.first = pass;
    last += pass[gradient_task(plan.schedule)];
    Seconds device, all;
    for (const TaskKind task : kTaskKinds) {
      device += chunk.times[task].device;
      all += pass[task];
    }
    bound.device += m * device;
    bound.own += m * all;
    const double sent = (kind.is_first ? 0 : 1) + (kind.is_last ? 0 : 1);
    // The receive of the stage's first input is not counted here: ends_of() counts it before the
    // first task.
    const double received = p2p.receiver_waits ? m * sent - (i == 0 && !kind.is_first ? 1 : 0) : 0;
    if (p2p.sender_waits) bound.own += (m * sent + received) * transfer_.wire;
  }
  if (plan.degrees.pp == 1)
    bound.own = own_without_pipeline(plan, times_of(plan, cut.chunks.front()));
  const FixedCost& fixed = *stage_fixed_[kind_of_stage];
  const LeastEnd least = least_end(stack, plan, fixed.end, end_of_first_layer(plan, cut, stage),
                                   {last, bound.first[TaskKind::kForward], last});
  bound.tail = least.before_norm;
  bound.update = least.update;
  return bound;
}

// Returns the work at the end of the step of a stage's first layer. Zero for layers of multi-token
// prediction, which may share weights.
StepEndCost PlanBounds::end_of_first_layer(const Plan& plan, const StageCut& cut,
                                           const StageKind& stage) const {
  const ModelSpec& model = pricer_.scenario().model;
  const FixedCosts& layers = fixed_[static_cast<std::size_t>(plan.zero)].of_layers;
  const ChunkKind& chunk = cut.chunks[static_cast<std::size_t>(stage.chunks.front())];
  if (stage.is_last && model.ends.prediction_layers > 0) return {};
  if (stage.is_first) {
    StepEndCost end = layers.embedding->end;
    end += layers.table->end;
    return end;
  }
  if (chunk.blocks == 0) return {};
  return layers.blocks[static_cast<std::size_t>(block_kind(model, chunk.first_layer))]->end;
}

Seconds PlanBounds::own_without_pipeline(const Plan& plan, const Chunk& chunk) const {
  const HostDeviceTime forward =
      single_stage_forward(pricer_.scenario().stack, chunk.times[TaskKind::kForward]);
  return repeat(then(forward, chunk.times[TaskKind::kBackward]), micro_batches(plan)).alone();
}

Seconds PlanBounds::mean_busy(const Plan& plan, const StageCut& cut) const {
  Seconds sum;
  for (const StageRun& run : cut.runs) {
    sum += static_cast<double>(run.count) * stages_[static_cast<std::size_t>(run.kind)].device;
  }
  return sum / static_cast<double>(plan.degrees.pp);
}

// The first task of a stage starts after one forward of every stage before it. After its last task,
// one backward of each of these stages follows. In a run of equal stages, the last one starts last,
// and its gradient passes through all others of the run. With a split backward, the weight
// gradients of s + 1 micro-batches follow the last backward on stage s, and only the last backwards
// of the stages follow each other.
PlanBounds::Ends PlanBounds::ends_of(const Plan& plan, const StageCut& cut) const {
  const Seconds wire = transfer_.wire;
  const bool waits = p2p_habits(pricer_.scenario().stack, plan.virtual_stages).sender_waits;
  const bool splits = splits_backward(plan.schedule);
  const std::int64_t m = micro_batches(plan);
  std::int64_t at = plan.degrees.pp;  // stages up to the current one
  Seconds start;
  for (const StageRun& run : cut.runs) {
    const StageBound& stage = stages_[static_cast<std::size_t>(run.kind)];
    start += static_cast<double>(run.count) * (stage.first[TaskKind::kForward] + wire);
  }
  Ends ends;
  Seconds sent;  // end of the last backward
  for (auto run = cut.runs.rbegin(); run != cut.runs.rend(); ++run) {
    const StageBound& stage = stages_[static_cast<std::size_t>(run->kind)];
    const Seconds forward = stage.first[TaskKind::kForward] + wire;
    const std::int64_t together = splits ? 1 : run->count;
    const auto others = static_cast<double>(together - 1);
    for (std::int64_t i = 0; i < run->count; i += together, at -= together) {
      const double awaiting = splits ? static_cast<double>(std::min(m, at)) : 0;
      const Seconds after = awaiting * stage.first[TaskKind::kWeightGradient];
      // If senders wait, `hop` includes the stage's own send, and the first stage sends no
      // gradient. Otherwise `hop` includes the transfer that the stage waits for.
      const Seconds hop = stage.first[TaskKind::kBackward] + (at == 1 && waits ? Seconds() : wire);
      start -= forward;  // forward of the run's last stage
      sent = std::max(start + stage.own - after, sent + hop) + others * hop;
      start -= others * forward;
      ends.pipeline = std::max(ends.pipeline, sent + after);
      ends.meeting = std::max(ends.meeting, sent + after + stage.tail);
    }
  }
  return ends;
}

Seconds PlanBounds::step(const Plan& plan, const StageCut& cut) {
  const StackSpec& stack = pricer_.scenario().stack;
  stages_.clear();
  Seconds update;
  for (std::size_t kind = 0; kind < cut.stages.size(); ++kind) {
    stages_.push_back(bound_of(plan, cut, kind));
    update = std::max(update, stages_.back().update);
  }
  const Ends ends = ends_of(plan, cut);
  if (world_ != gpu_count(plan)) {
    world_ = gpu_count(plan);
    expected_maximum_ = expected_maximum(world_);
    norm_ = pricer_.global_norm(plan);
  }
  const Seconds waiting = stack.rank_jitter * expected_maximum_ * ends.pipeline;
  return (1 + stack.uncalibrated_overhead) * kRounding *
         (ends.meeting + norm_ + update + stack.host.per_step + waiting);
}

}  // namespace tpsim
