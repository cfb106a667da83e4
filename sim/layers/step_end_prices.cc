// Time of a layer's work at the end of a step: gradient reduction, optimizer, weight gather.
#include <algorithm>
#include <cmath>

#include "core/software/optimizer_kinds.h"
#include "sim/layers/layer_pricer.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/owner_share.h"
#include "sim/layers/plain_kernels.h"
#include "sim/layers/shard_groups.h"

namespace tpsim {
namespace {

// Returns the time of ops that the host issues ahead: the larger of host and device time, or their
// sum if the device is synchronous.
Seconds issued_and_run(const Scenario& scenario, Seconds issue, Seconds run) {
  return !scenario.profile.device.asynchronous ? issue + run : std::max(issue, run);
}

// Returns the traffic of an AdamW op relative to the same op with fp32 moments and an fp32 copy of
// the weights; 1 for other ops. State is read and written. Without the fp32 copy, the weights are
// read instead.
double state_traffic(const OpRecord& op, const StackSpec& stack) {
  if (op.key.kind != OpKind::kAdamW) return 1;
  const bool has_copy = updates_fp32_weights(stack.parts, op.key.dtype);
  const std::int64_t wide = size_of(DType::kFloat32);
  const std::int64_t saved = wide - size_of(stack.parts.optimizer_dtype);
  const auto moments = static_cast<double>(2 * row_of(OptimizerKind::kAdamW).moments * saved);
  const double copy = has_copy ? 0 : static_cast<double>(2 * wide - size_of(op.key.dtype));
  return 1 - (moments + copy) * static_cast<double>(op.key.dims[0]) / op.bytes;
}

}  // namespace

// Returns the device time of an op. Ops of an offloaded optimizer are bound by the host link, or by
// host memory, which the ranks of a host share. If the device is the host, they are ordinary ops.
Seconds LayerPricer::end_op_time(const OpRecord& op) {
  const ModelPart part = op.label.part;
  const bool copies = part == ModelPart::kGradientsToHost || part == ModelPart::kWeightsToDevice;
  const bool offloaded = copies || part == ModelPart::kHostOptimizer;
  if (!scenario().profile.device.asynchronous || !offloaded) {
    const PlainKernel kernel = plain_kernel(op, scenario().stack, scenario().model.activation_ops);
    return kernel.traffic * state_traffic(op, scenario().stack) * op_price(op).time;
  }
  const HostSpec& host = scenario().cluster.host;
  const Bytes bytes(op.bytes);
  if (copies)
    // op.bytes counts the read and the write.
    return 0.5 * bytes / (host.link_efficiency * host.link);
  const auto sharers = static_cast<double>(host_size(scenario().cluster));
  return sharers * bytes / (host.memory_efficiency * host.memory_bandwidth);
}

// Returns the time of the owners' broadcasts of a layer's weights, which run one after the other.
// An owner owns a part of a block, or several blocks of a stage.
Seconds LayerPricer::owner_broadcast_time(const CollectiveRecord& record, const StepEndTrace& trace,
                                          const Plan& plan) const {
  const auto blocks =
      static_cast<double>(scenario().model.layers) / static_cast<double>(plan.degrees.pp);
  const double owners = static_cast<double>(shard_ranks(scenario(), plan)) / std::max(1.0, blocks);
  const double calls = std::min(owners, static_cast<double>(trace.tensors));
  return in_calls(record, calls, plan);
}

// Returns the time of a reduction that runs bucket by bucket. A bucket has a number of elements of
// the dtype that is reduced.
Seconds LayerPricer::reduce_in_buckets(const CollectiveRecord& record, const Plan& plan) const {
  const StackSpec& stack = scenario().stack;
  const bool as_computed =
      plan.zero >= 2 && stack.training.reduce_dtype == ReduceDtype::kAsComputed;
  const DType reduced = as_computed ? plan.dtype : plan.gradient_dtype;
  const auto bucket = static_cast<double>(stack.memory.reduction_bucket * size_of(reduced));
  return in_calls(record, static_cast<double>(record.bytes) / bucket, plan);
}

// Returns the time of a record that is sent in `calls` calls of equal size. Below one: a call
// carries several such records.
Seconds LayerPricer::in_calls(CollectiveRecord record, double calls, const Plan& plan) const {
  if (record.bytes <= 0) return Seconds();
  record.bytes = std::llround(static_cast<double>(record.bytes) / calls);
  return calls * collective(record, plan);
}

Seconds LayerPricer::end_collective(const CollectiveRecord& record, const StepEndTrace& trace,
                                    const Plan& plan) const {
  const bool owned = scenario().stack.parts.sync == DataParallelSync::kOwners;
  if (owned && gathers_weights(record) && record.kind == CollectiveKind::kAllGather) {
    return owner_broadcast_time(record, trace, plan);
  }
  const bool reduces = record.label.part == ModelPart::kDataParallelReduction;
  if (reduces && scenario().stack.memory.reduction_bucket > 0) {
    return reduce_in_buckets(record, plan);
  }
  return collective(record, plan);
}

StepEndCost LayerPricer::price_end(const StepEndTrace& trace, const Plan& plan) {
  StepEndCost end;
  const HostCost& host = scenario().stack.host;
  const std::vector<double> shares = owner_times(trace);
  const auto price = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const ProgramEvent& event = trace.program.events[i];
      if (event.kind == ProgramEvent::Kind::kOp) {
        const OpRecord& op = trace.program.ops[event.index];
        const auto launches = static_cast<double>(
            plain_kernel(op, scenario().stack, scenario().model.activation_ops).launches);
        end[end_part(op.label)] +=
            shares[i] * issued_and_run(scenario(), launches * host.per_op, end_op_time(op));
      } else if (event.kind == ProgramEvent::Kind::kCollective) {
        const CollectiveRecord record = as_gathered(trace.program.collectives[event.index], plan);
        if (record.group == GroupKind::kModel || record.group == GroupKind::kWorld) continue;
        const Seconds time = end_collective(record, trace, plan);
        end[end_part(record.label)] +=
            shares[i] * issued_and_run(scenario(), host.per_collective, time);
      }
    }
  };
  price(trace.clear, trace.end);
  return end;
}

}  // namespace tpsim
