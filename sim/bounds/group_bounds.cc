#include "sim/bounds/group_bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/normal.h"
#include "lowering/passes/quantization.h"
#include "sim/bounds/step_end_bounds.h"

namespace tpsim {
namespace {

template <class Work>
Work work_in(const HostDeviceTime& time) {
  return {time.device.value(), time.host.value(), time.alone().value()};
}

}  // namespace

GroupBounds::Work& GroupBounds::Work::operator+=(const Work& other) {
  device += other.device;
  host += other.host;
  alone += other.alone;
  return *this;
}

void GroupBounds::Layer::add(const Layer& other, double count) {
  for (const TaskKind task : kTaskKinds) {
    Work& sum = (*this)[task];
    const Work& work = other[task];
    sum.device += count * work.device;
    sum.host += count * work.host;
    sum.alone += count * work.alone;
  }
}

void GroupBounds::Layer::keep_forward() {
  for (const TaskKind task : {TaskKind::kBackward, TaskKind::kWeightGradient}) (*this)[task] = {};
}

GroupBounds::Layer GroupBounds::layer_of(const LayerCost& cost) {
  Layer layer;
  for (const TaskKind task : kTaskKinds) layer[task] = work_in<Work>(cost[task].time);
  layer[TaskKind::kBackward] += work_in<Work>(cost.accumulate.time);
  return layer;
}

GroupBounds::Layer GroupBounds::core_layer_of(const LayerCost& cost) {
  Layer layer;
  for (const TaskKind task : kTaskKinds) {
    layer[task] = {cost[task].core.device.value(), cost[task].core.host.value(), 0};
  }
  return layer;
}

// Returns the cost of a block of this kind. With Recompute::kBlocks, takes the smaller of the costs
// with and without recompute, which bounds both.
GroupBounds::Layer GroupBounds::block_of(const Plan& plan, std::int64_t kind, LayerOf reduced) {
  const auto of = [&](const Plan& whole) {
    return reduced(pricer_.layer(LayerKind::kBlock, whole, kind));
  };
  if (plan.recompute != Recompute::kBlocks) return of(plan);
  const Layer kept = of(with_whole_recompute(plan, false));
  const Layer again = of(with_whole_recompute(plan, true));
  const auto least = [](const Work& a, const Work& b) {
    return Work{std::min(a.device, b.device), std::min(a.host, b.host), std::max(a.alone, b.alone)};
  };
  Layer layer;
  for (const TaskKind task : kTaskKinds) layer[task] = least(kept[task], again[task]);
  return layer;
}

GroupBounds::Layers& GroupBounds::KnownLayers::at(LayerPricer& pricer, const Plan& plan) {
  constexpr std::size_t kMost = 20000;  // about 1 KB each
  const LayerKey key = layer_key(LayerKind::kBlock, plan, pricer.scenario());
  if (recent_ != nullptr && last_ == key) return *recent_;
  if (std::exchange(tp_, plan.degrees.tp) != plan.degrees.tp || by_key_.size() >= kMost) {
    by_key_.clear();
  }
  last_ = key;
  recent_ = &by_key_[pricer.model_key(key, plan)];
  return *recent_;
}

const GroupBounds::Layers& GroupBounds::known(KnownLayers& all, const Plan& plan, LayerOf reduced) {
  Layers& layers = all.at(pricer_, plan);
  if (!layers.is_known) set(layers, plan, reduced);
  return layers;
}

void GroupBounds::set(Layers& layers, const Plan& plan, LayerOf reduced) {
  layers.is_known = true;
  const ModelSpec& model = pricer_.scenario().model;
  const auto of = [&](LayerKind kind) { return reduced(pricer_.layer(kind, plan)); };
  layers.embedding = of(LayerKind::kEmbedding);
  layers.ends = layers.embedding;
  const auto more = static_cast<double>(model.ends.prediction_layers);
  layers.ends.add(of(LayerKind::kHead), 1 + more);
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    layers.blocks.push_back(block_of(plan, kind, reduced));
  }
  if (more > 0) {
    for (const std::int64_t kind : prediction_kinds(model)) {
      layers.ends.add(layers.blocks[static_cast<std::size_t>(kind)], more);
    }
  }
  // The exchange of delayed scales adds time that depends on the cut, so the upper bound is
  // infinite.
  if (exchanges_scales(pricer_.scenario().stack, plan)) {
    for (Work& task : layers.ends) task.alone = std::numeric_limits<double>::max();
  }
  layers.all = layers.ends;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    layers.all.add(layers.blocks[static_cast<std::size_t>(kind)],
                   static_cast<double>(layers_of_kind(model, kind)));
  }
}

bool GroupBounds::host_runs_ahead(const Plan& plan) const {
  return plan.degrees.pp > 1 && runs_ahead(pricer_.scenario().stack, plan.virtual_stages);
}

// Returns the host time per chunk and micro-batch in addition to that of its layers; 0 if the host
// runs ahead.
double GroupBounds::host_of_chunk(const Plan& plan) const {
  return host_runs_ahead(plan) ? 0 : pricer_.scenario().stack.host.per_micro_batch.value();
}

// Returns a lower bound of the time of forward and backward: the larger of device and host time,
// for each pass separately if the host waits between passes.
double GroupBounds::work_of(const Plan& plan, const Layer& layer) const {
  const bool waits = plan.degrees.pp > 1 && !host_runs_ahead(plan);
  double device = 0, host = plan.degrees.pp > 1 ? 0 : host_of_chunk(plan);
  for (const Work& task : layer) {
    device += waits ? std::max(task.device, task.host) : task.device;
    host += task.host;
  }
  return waits ? device : std::max(device, host);
}

double GroupBounds::wire_wait_time(const Plan& plan, const TransferCost& transfer) const {
  const P2pHabits p2p = p2p_habits(pricer_.scenario().stack, plan.virtual_stages);
  return p2p.sender_waits ? transfer.wire.value() : 0;
}

// Mean over the stages of each stage's bound: its own work plus the first tasks of the stages
// before it.
double GroupBounds::mean_pipeline(const Plan& plan, const CutFloors& cuts, const Layers& layers,
                                  const TransferCost& transfer) const {
  const auto m = static_cast<double>(micro_batches(plan));
  if (plan.degrees.pp == 1) return m * work_of(plan, layers.all);
  const auto stages = static_cast<double>(plan.degrees.pp);
  const auto chunks = static_cast<double>(chunk_count(plan));
  const double per_chunk = host_of_chunk(plan);
  const double own = work_of(plan, layers.all) + chunks * per_chunk +
                     2 * (chunks - 1) * (transfer.gather.value() + wire_wait_time(plan, transfer));
  Layer ahead;
  ahead.add(layers.embedding, (stages - 1) / stages);
  for (std::size_t kind = 0; kind < layers.blocks.size(); ++kind) {
    ahead.add(layers.blocks[kind], cuts.mean_ahead[kind]);
  }
  // The last task of a split backward sends nothing to the stages before.
  if (splits_backward(plan.schedule)) ahead.keep_forward();
  return m * own / stages + work_of(plan, ahead) +
         (stages - 1) / 2 * (transfer.wire.value() + per_chunk);
}

// Bounds from the fullest stage: its own work follows the first forwards of the stages before it.
// After its last task, the first backwards of these stages follow.
GroupBounds::Pipeline GroupBounds::by_fullest_stage(const Plan& plan, const CutFloor& cut,
                                                    const Layers& layers,
                                                    const TransferCost& transfer) const {
  if (plan.degrees.pp == 1) return {};  // the only stage is the mean stage
  const auto m = static_cast<double>(micro_batches(plan));
  const auto chunks = static_cast<double>(plan.virtual_stages);
  const auto before = static_cast<double>(cut.stages_ahead);
  const double per_chunk = host_of_chunk(plan);
  Layer stage, ahead;
  for (std::size_t kind = 0; kind < layers.blocks.size(); ++kind) {
    stage.add(layers.blocks[kind], static_cast<double>(cut.fullest[kind]));
    ahead.add(layers.blocks[kind], static_cast<double>(cut.ahead[kind]));
  }
  if (before > 0) ahead.add(layers.embedding, 1);
  if (splits_backward(plan.schedule)) ahead.keep_forward();
  const double own = work_of(plan, stage) + chunks * per_chunk +
                     2 * (chunks - 1) * (transfer.gather.value() + wire_wait_time(plan, transfer));
  const double way = m * own + before * (transfer.wire.value() + per_chunk);
  // If the host runs ahead, its time for forward may count in backward, so it is left out here.
  const Work& forward = ahead[TaskKind::kForward];
  const double host = host_runs_ahead(plan) ? 0 : forward.host;
  return {way + std::max(forward.device, host), way + work_of(plan, ahead)};
}

// Returns lower bounds of the end of the step for a stage with at least these blocks. Assumes the
// largest possible overlap of collectives.
GroupBounds::End GroupBounds::end_of(const Plan& plan, const std::vector<std::int64_t>& blocks,
                                     const Layers& layers, const Fixed& fixed,
                                     const TransferCost& transfer) const {
  const StackSpec& stack = pricer_.scenario().stack;
  Layer stage = layers.ends;
  StepEndCost end;
  for (std::size_t kind = 0; kind < blocks.size(); ++kind) {
    const auto count = static_cast<double>(blocks[kind]);
    stage.add(layers.blocks[kind], count);
    end += count * fixed.of_layers.blocks[kind]->end;
  }
  const double gathers = static_cast<double>(plan.virtual_stages) * transfer.gather.value();
  const Seconds backward(stage[gradient_task(plan.schedule)].alone + gathers);
  const Seconds forward(stage[TaskKind::kForward].alone + gathers +
                        stack.host.per_micro_batch.value());
  // The last backward may have more blocks: it may hide a whole update.
  const LeastEnd least =
      least_end(stack, plan, end, {}, {backward, forward, end[StepEndPart::kOptimizer]});
  return {least.before_norm.value(), least.update.value()};
}

GroupBounds::Times GroupBounds::least_times(const Plan& plan, const CutFloors& cuts) {
  return times_of(plan, cuts, layers_of(plan), &fixed_of(plan));
}

GroupBounds::Times GroupBounds::least_work(const Plan& plan, const CutFloors& cuts) {
  return times_of(plan, cuts, layers_of(plan), nullptr);
}

GroupBounds::Times GroupBounds::least_core(const Plan& plan, const Plan& layers,
                                           const CutFloors& cuts) {
  return times_of(plan, cuts, known(core_, layers, &core_layer_of), nullptr);
}

GroupBounds::Times GroupBounds::least_device(const Plan& layers) {
  const StackSpec& stack = pricer_.scenario().stack;
  const double work = busy_of(layers, known(core_, layers, &core_layer_of));
  set_world(layers);
  const double pipeline = (1 + stack.rank_jitter * expected_maximum_) * work;
  return {Seconds((1 + stack.uncalibrated_overhead) * pipeline), Seconds(work)};
}

// Returns the time in which the device of the mean stage works.
double GroupBounds::busy_of(const Plan& plan, const Layers& layers) {
  double busy = 0;
  for (const Work& task : layers.all) busy += task.device;
  return kGroupRounding * static_cast<double>(micro_batches(plan)) * busy /
         static_cast<double>(plan.degrees.pp);
}

void GroupBounds::set_world(const Plan& plan) {
  if (world_ == gpu_count(plan)) return;
  world_ = gpu_count(plan);
  expected_maximum_ = expected_maximum(world_);
  norm_ = pricer_.global_norm(plan);
}

// `fixed`: null to leave out the end of the step.
GroupBounds::Times GroupBounds::times_of(const Plan& plan, const CutFloors& cuts,
                                         const Layers& layers, const Fixed* fixed) {
  const StackSpec& stack = pricer_.scenario().stack;
  const TransferCost transfer = plan.degrees.pp > 1 ? pricer_.transfer(plan) : TransferCost{};
  set_world(plan);
  const double mean = mean_pipeline(plan, cuts, layers, transfer);
  double least = std::numeric_limits<double>::max();
  for (const CutFloor& cut : cuts.each) {
    const Pipeline by_fullest = by_fullest_stage(plan, cut, layers, transfer);
    const double pipeline = std::max(mean, by_fullest.whole);
    const double waiting = stack.rank_jitter * expected_maximum_ * pipeline;
    double step = pipeline + waiting;
    if (fixed != nullptr) {
      const End first = end_of(plan, cut.first, layers, *fixed, transfer);
      const End fullest = end_of(plan, cut.fullest, layers, *fixed, transfer);
      // The first stage ends its last task no earlier than all other stages, unless the backward is
      // split.
      const double tail = splits_backward(plan.schedule) ? 0 : first.tail;
      const double met = std::max(pipeline + tail, by_fullest.fullest + fullest.tail);
      step = met + std::max(first.update, fullest.update) + waiting;
    }
    least = std::min(least, step);
  }
  const double step = (1 + stack.uncalibrated_overhead) * kGroupRounding *
                      (least + norm_.value() + stack.host.per_step.value());
  return {Seconds(step), Seconds(busy_of(plan, layers))};
}

}  // namespace tpsim
