#include "reference_model/parallel/transfers.h"

#include "reference_model/parallel/context_parallel.h"

namespace tpsim {
namespace {

bool in_parts(const RankContext& context, const Tensor& x) {
  const std::int64_t tp = context.plan.degrees.tp;
  return context.options.pipeline_sends == PipelineSends::kScattered &&
         !context.plan.sequence_parallel && tp > 1 && x.elements() % tp == 0;
}

Tensor part_of(const RankContext& context, const Tensor& x) {
  const std::int64_t count = x.elements() / context.plan.degrees.tp;
  return x.slice(context.at.tp * count, count);
}

// Transposes whole samples to sequence-major order and returns this rank's positions.
std::vector<std::int32_t> by_position(const RankContext& context,
                                      const std::vector<std::int32_t>& samples,
                                      std::int64_t shift) {
  const std::int64_t seq = context.model.seq, batch = context.plan.micro_batch;
  TPSIM_CHECK(static_cast<std::int64_t>(samples.size()) == batch * (seq + 1),
              "a micro-batch has micro_batch x (seq + 1) tokens");
  std::vector<std::int32_t> ids;
  for (const SequenceRun& run : sequence_runs(context)) {
    for (std::int64_t s = run.position; s < run.position + run.count; ++s) {
      for (std::int64_t b = 0; b < batch; ++b) {
        ids.push_back(samples[static_cast<std::size_t>(b * (seq + 1) + s + shift)]);
      }
    }
  }
  return ids;
}

}  // namespace

void send_to_stage(const RankContext& context, Communicator& pipeline, const Tensor& x, int stage,
                   const Label& label) {
  // Models with several residual streams are priced but not executed. The streams are sent as one
  // tensor.
  const Tensor sent = context.model.ends.streams > 1
                          ? allocate_activation(context, stage_shape(context), label.text)
                          : x;
  pipeline.send(in_parts(context, sent) ? part_of(context, sent) : sent, stage, label);
}

Tensor receive_from_stage(const RankContext& context, Communicator& pipeline, int stage,
                          const Label& label) {
  Tensor x = allocate_activation(context, stage_shape(context), label.text);
  if (!in_parts(context, x)) {
    pipeline.receive(x, stage, label);
  } else {
    const Tensor part = part_of(context, x);
    pipeline.receive(part, stage, label);
    context.groups.tensor.all_gather(part, x, label);
  }
  if (context.model.ends.streams == 1) return x;
  x = Tensor();
  return allocate_activation(context, residual_shape(context), label.text);
}

Tensor share_tokens(const RankContext& context, const std::vector<std::int32_t>& samples,
                    std::int64_t shift, const char* label) {
  const LocalSizes sizes = local_sizes(context);
  Tensor tokens = context.device.allocate({sizes.seq, sizes.batch}, DType::kInt32,
                                          MemoryCategory::kActivations, label);
  if (!samples.empty()) {
    const std::vector<std::int32_t> ids = by_position(context, samples, shift);
    context.device.upload(std::as_bytes(std::span(ids)), tokens);
  }
  context.groups.tensor.broadcast(tokens, 0, {ModelPart::kData, label});
  return tokens;
}

}  // namespace tpsim
