#include "reference_model/transfers.h"

namespace tpsim {
namespace {

bool in_parts(const RankContext& context, const Tensor& x) {
  const std::int64_t tp = context.plan.degrees.tp;
  return context.options.scatter_gather_transfers && !context.plan.sequence_parallel && tp > 1 &&
         x.elements() % tp == 0;
}

Tensor part_of(const RankContext& context, const Tensor& x) {
  const std::int64_t count = x.elements() / context.plan.degrees.tp;
  return x.slice(context.at.tp * count, count);
}

}  // namespace

void send_to_stage(const RankContext& context, Communicator& pipeline, const Tensor& x, int stage,
                   const char* label) {
  pipeline.send(in_parts(context, x) ? part_of(context, x) : x, stage, label);
}

Tensor receive_from_stage(const RankContext& context, Communicator& pipeline, int stage,
                          const char* label) {
  Tensor x = allocate_activation(context, residual_shape(context), label);
  if (!in_parts(context, x)) {
    pipeline.receive(x, stage, label);
    return x;
  }
  const Tensor part = part_of(context, x);
  pipeline.receive(part, stage, label);
  context.groups.tensor.all_gather(part, x, label);
  return x;
}

}  // namespace tpsim
