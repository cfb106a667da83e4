#include "sim/step/step_end.h"

#include <algorithm>

#include "core/software/cpu_optimizers.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/stream_clocks.h"

namespace tpsim {
namespace {

// A layer of a stage, with its kernels in the first forward and the last backward, and its work at
// the end of the step.
struct StageLayer {
  Seconds forward, backward;
  StepEndCost end;
  bool is_in_first_chunk = true;
};

// Lists the layers of a stage in the order of forward.
class StageLayers {
 public:
  StageLayers(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
              const PipelineTimes& times)
      : pricer_(pricer),
        plan_(plan),
        costs_(costs),
        times_(times),
        fixed_(fixed_costs(pricer, plan)) {}

  std::vector<StageLayer> of_stage(std::size_t stage) {
    layers_.clear();
    const std::vector<std::int32_t>& chunks = costs_.stages[stage].chunks;
    for (std::size_t i = 0; i < chunks.size(); ++i) add_chunk(stage, i);
    return layers_;
  }

 private:
  // The time of a task is shared among the layers as their device time.
  void add_chunk(std::size_t stage, std::size_t i) {
    const ChunkKind& kind = costs_.chunk(costs_.stages[stage], i);
    const std::size_t begin = layers_.size();
    const TaskKind last = gradient_task(plan_.schedule);
    Seconds forward, backward;
    for (const ChunkLayer& layer : chunk_layers(pricer_.scenario(), plan_, kind)) {
      const LayerCost& cost = pricer_.layer(layer.kind, plan_of(layer, plan_), layer.block);
      StageLayer one{cost[TaskKind::kForward].time.device, cost[last].time.device, {}, i == 0};
      for (std::int64_t n = 0; n < layer.count; ++n) {
        one.end = end_of(kind, layer, n);
        layers_.push_back(one);
        forward += one.forward;
        backward += one.backward;
      }
    }
    const StageTimes& of_stage = times_.stages[stage];
    const auto scale = [&](TaskKind task, Seconds all) {
      return all > Seconds() ? to_seconds(of_stage[task][i]) / all : 0;
    };
    const double forward_scale = scale(TaskKind::kForward, forward);
    const double backward_scale = scale(last, backward);
    for (std::size_t l = begin; l < layers_.size(); ++l) {
      layers_[l].forward *= forward_scale;
      layers_[l].backward *= backward_scale;
    }
  }

  // Returns the work of the n-th of equal layers. All layers of multi-token prediction share a
  // head.
  StepEndCost end_of(const ChunkKind& chunk, const ChunkLayer& layer, std::int64_t n) const {
    switch (layer.kind) {
      case LayerKind::kBlock: return fixed_.blocks[static_cast<std::size_t>(layer.block)]->end;
      case LayerKind::kEmbedding: {
        StepEndCost end = fixed_.embedding->end;
        end += fixed_.table->end;
        return end;
      }
      case LayerKind::kHead: {
        if (n > 0) return {};
        StepEndCost end = fixed_.head->end;
        const bool shares = pricer_.scenario().model.tied_embedding && chunk.is_first;
        if (!shares) end += fixed_.head_table->end;
        return end;
      }
      case LayerKind::kWordEmbeddings:
      case LayerKind::kHeadTable: break;
    }
    return {};
  }

  LayerPricer& pricer_;
  const Plan& plan_;
  const PlanCosts& costs_;
  const PipelineTimes& times_;
  const FixedCosts fixed_;
  std::vector<StageLayer> layers_;
};

// Returns what work of a part adds to the last backward, in which the work of a layer starts behind
// the layer. `total`: of the stage.
Seconds after_backward(const std::vector<StageLayer>& layers, StepEndPart part, Seconds total,
                       Mover mover, double slowdown) {
  StreamClocks clocks(slowdown);
  Seconds seen;
  for (std::size_t i = layers.size(); i-- > 0;) {
    seen += clocks.run(layers[i].backward);
    const Seconds time = std::min(total, layers[i].end[part]);
    clocks.start(0, Stream::kData, mover, time);
    total -= time;
  }
  clocks.start(0, Stream::kData, mover, total);
  return seen + clocks.wait(Stream::kData);
}

// Returns what weight gathers add to the first forward, in which a layer waits for its weights.
Seconds before_forward(const std::vector<StageLayer>& layers, Seconds total, double slowdown) {
  StreamClocks clocks(slowdown);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Seconds time = std::min(total, layers[i].end[StepEndPart::kParameterGather]);
    clocks.start(static_cast<std::uint32_t>(i), Stream::kData, Mover::kProcessors, time);
    total -= time;
  }
  clocks.start(static_cast<std::uint32_t>(layers.size()), Stream::kData, Mover::kProcessors, total);
  Seconds seen;
  for (std::size_t i = 0; i < layers.size() && layers[i].is_in_first_chunk; ++i) {
    seen += clocks.wait(static_cast<std::uint32_t>(i));
    seen += clocks.run(layers[i].forward);
  }
  return seen + clocks.wait(Stream::kData);
}

StageEnd end_of(const StackSpec& stack, const Plan& plan, const StepEndCost& end,
                const std::vector<StageLayer>& layers) {
  StageEnd of_stage;
  of_stage.tied = end[StepEndPart::kEmbeddingGradients];
  of_stage.reduction = end[StepEndPart::kDataParallelReduction];
  of_stage.local = end[StepEndPart::kSequenceParallelGradients] + end[StepEndPart::kGradNorm];
  of_stage.update = end[StepEndPart::kOptimizer];
  of_stage.gather = end[StepEndPart::kParameterGather];
  if (overlaps_reduction(stack)) {
    of_stage.reduction =
        after_backward(layers, StepEndPart::kDataParallelReduction, of_stage.reduction,
                       Mover::kProcessors, stack.overlap_slowdown);
  }
  if (offloads_optimizer(plan) && row_of(cpu_optimizer(stack)).overlaps_backward) {
    of_stage.update =
        after_backward(layers, StepEndPart::kOptimizer, of_stage.update, Mover::kCopyEngine, 1);
  }
  if (overlaps_gather(stack)) {
    of_stage.gather = before_forward(layers, of_stage.gather, stack.overlap_slowdown);
  }
  of_stage.update += end[StepEndPart::kZeroGrad];
  return of_stage;
}

}  // namespace

std::vector<StageEnd> stage_ends(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                                 const PipelineTimes& times) {
  StageLayers layers(pricer, plan, costs, times);
  std::vector<StageEnd> ends;
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    ends.push_back(end_of(pricer.scenario().stack, plan, costs.stages[s].end, layers.of_stage(s)));
  }
  return ends;
}

}  // namespace tpsim
