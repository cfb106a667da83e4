// Time of a layer's work at the end of a step: gradient reduction, optimizer, weight gather.
#include <algorithm>

#include "core/software/cpu_optimizers.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {
namespace {

// Returns the time of ops that the host issues ahead: the larger of host and device time, or their
// sum if the device is synchronous.
Seconds issued_and_run(const Scenario& scenario, Seconds issue, Seconds run) {
  return !scenario.profile.device.asynchronous ? issue + run : std::max(issue, run);
}

}  // namespace

// Returns the device time of an op. Ops of an offloaded optimizer are bound by the host link, or by
// host memory and cores, which the ranks of a host share. If the device is the host, they are
// ordinary ops.
Seconds LayerPricer::end_op_time(const LoweredOp& op, const Plan& plan) {
  const ModelPart part = op.label.part;
  const bool copies = part == ModelPart::kGradientsToHost || part == ModelPart::kWeightsToDevice;
  const bool is_norm = part == ModelPart::kGradNorm && offloads_weights(plan);
  const bool offloaded = copies || part == ModelPart::kHostOptimizer || is_norm;
  if (!scenario().profile.device.asynchronous || !offloaded) {
    return op.repeats * (op.traffic * op_price(op).time);
  }
  const CpuOptimizerRow& row = row_of(cpu_optimizer(scenario().stack));
  const Bytes bytes(op.repeats * op.bytes);
  if (copies) {
    const bool is_wide = part == ModelPart::kGradientsToHost && !row.narrow_gradients;
    const DType copied = is_wide ? DType::kFloat32 : plan.dtype;
    const double widening =
        static_cast<double>(size_of(copied)) / static_cast<double>(size_of(op.key.dtype));
    // op.bytes counts the read and the write.
    return host_time(0.5 * widening * bytes, Bytes());
  }
  return host_time(Bytes(), bytes);
}

// The ranks of a host share its memory, and each has a link of its own.
Seconds LayerPricer::host_time(Bytes copied, Bytes passed) const {
  const HostSpec& host = scenario().cluster.host;
  const CpuOptimizerRow& row = row_of(cpu_optimizer(scenario().stack));
  const auto sharers = static_cast<double>(host_size(scenario().cluster));
  return copied / (host.link_efficiency * host.link) +
         sharers * passed / (row.speed * host.memory_efficiency * host.memory_bandwidth);
}

StepEndCost LayerPricer::price_end(const LoweredLayer& layer, const Plan& plan) {
  StepEndCost end;
  for (const Phase phase : {Phase::kClearGradients, Phase::kUpdate}) {
    for (const LoweredEvent& event : layer.phase(phase).events) {
      if (event.kind == LoweredEvent::Kind::kOp) {
        const LoweredOp& op = layer.ops[event.index];
        const double launches = op.repeats * static_cast<double>(op.launches);
        end[end_part(op.label)] +=
            issued_and_run(scenario(), launches * op.issue, end_op_time(op, plan));
      } else if (event.kind == LoweredEvent::Kind::kCollective) {
        const LoweredCollective& record = layer.collectives[event.index];
        if (record.group == GroupKind::kModel || record.group == GroupKind::kWorld) continue;
        const Seconds time = record.calls > 0 ? record.calls * collective(record, plan) : Seconds();
        end[end_part(record.label)] += issued_and_run(scenario(), record.issue, time);
      }
    }
  }
  return end;
}

}  // namespace tpsim
