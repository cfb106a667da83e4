// Costs of a low-precision recipe per chunk and per step, in addition to the passes in layers.
#include "core/scenario/node_map.h"
#include "lowering/passes/quantization.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// The weights of linear layers are quantized once per step. Approximated by all weights of a block.
void LayerPricer::add_weight_copies(FixedCost& fixed, const Plan& plan) const {
  double& held = fixed.held[static_cast<std::size_t>(MemoryCategory::kWeights)];
  const double weights = held / static_cast<double>(size_of(plan.dtype));
  const Bytes moved(weights * weight_quantization_bytes(scenario(), plan));
  held += weights * weight_copy_bytes(scenario(), plan);
  fixed.end[StepEndPart::kOptimizer] += streaming_time(moved);
}

Seconds LayerPricer::streaming_time(Bytes moved) const {
  const Profile& profile = scenario().profile;
  return moved / (profile.model.streaming_efficiency * profile.device.memory_bandwidth);
}

// Models Transformer Engine's reduce_and_update_fp8_tensors, at the end of every outermost
// fp8_autocast and of its backward. It collects the amax values of all tensors, all-reduces them,
// computes scales and shifts the amax histories.
PhaseCost LayerPricer::scale_exchange(const Plan& plan, std::int64_t blocks) const {
  PhaseCost phase;
  if (!exchanges_scales(scenario().stack, plan) || blocks == 0) return phase;
  constexpr double kTensors =
      4 * 3;  // per block: input, weight and output of its four linear layers
  constexpr double kKernels = 4;
  const GroupPlacement placement = place_replicas(plan, node_map(scenario(), plan));
  const Bytes bytes(kTensors * sizeof(float) * static_cast<double>(blocks));
  const Seconds reduction = collectives().price(CollectiveKind::kAllReduce, bytes, placement);
  const Seconds update = kKernels * scenario().profile.model.kernel_latency;
  phase.work[StepTerm::kTensorCommunication] += reduction;
  phase.work[StepTerm::kElementwise] += update;
  phase.by_source[PriceSource::kModel] += update;
  phase.time = launch(scenario(), scenario().stack.host.per_collective, reduction + update);
  return phase;
}

}  // namespace tpsim
