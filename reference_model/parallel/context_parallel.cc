#include "reference_model/parallel/context_parallel.h"

#include <algorithm>

namespace tpsim {
namespace {

Tensor allocate_key_values(const RankContext& context, const QkvLayout& layout, std::int64_t seq,
                           const char* label) {
  return allocate_activation(context, {seq, layout.batch, key_value_width(layout)}, label);
}

// Copies between two orders of the 2 cp chunks of a sequence: by position, and by rank (rank r has
// chunks r and 2 cp - 1 - r). One op copies the first chunks of all ranks. A second op copies the
// second chunks, in reverse order.
void reorder_chunks(const RankContext& context, const Tensor& by_rank, const Tensor& by_position,
                    bool to_position) {
  const std::int64_t cp = context.plan.degrees.cp;
  const std::int64_t chunk = by_rank.elements() / (2 * cp);
  const auto chunks = [&](const Tensor& tensor, std::int64_t first, std::int64_t stride) {
    return Matrix{.tensor = tensor,
                  .rows = cp,
                  .cols = chunk,
                  .row_stride = stride * chunk,
                  .offset = first * chunk};
  };
  for (const bool second : {false, true}) {
    const Matrix held = chunks(by_rank, second ? 1 : 0, 2);
    const Matrix ordered = second ? chunks(by_position, 2 * cp - 1, -1) : chunks(by_position, 0, 1);
    context.device.run(CopyMatrices{.from = to_position ? held : ordered,
                                    .to = to_position ? ordered : held,
                                    .label = {ModelPart::kContextParallel, "context.reorder"}});
  }
}

}  // namespace

std::vector<SequenceRun> sequence_runs(const RankContext& context) {
  const std::int64_t cp = context.plan.degrees.cp, seq = context.model.seq;
  if (cp == 1) return {{0, seq, 0}};
  const std::int64_t chunk = seq / (2 * cp);
  return {{0, chunk, context.at.cp * chunk}, {chunk, chunk, (2 * cp - 1 - context.at.cp) * chunk}};
}

std::vector<SequenceRun> share_runs(const RankContext& context) {
  const std::int64_t count = local_sizes(context).seq_share;
  const std::int64_t first = context.plan.sequence_parallel ? context.at.tp * count : 0;
  std::vector<SequenceRun> shares;
  for (const SequenceRun& run : sequence_runs(context)) {
    const std::int64_t begin = std::max(run.row, first);
    const std::int64_t end = std::min(run.row + run.count, first + count);
    if (begin < end) shares.push_back({begin - first, end - begin, run.position + begin - run.row});
  }
  return shares;
}

Tensor gather_key_values(const RankContext& context, const QkvLayout& layout, const Tensor& qkv) {
  const std::int64_t seq = context.model.seq;
  Tensor own = allocate_key_values(context, layout, local_sizes(context).seq, "context.key_values");
  context.device.run(CopyMatrices{.from = key_values_in(layout, qkv),
                                  .to = packed_key_values(layout, own),
                                  .inner = key_value_pieces(layout),
                                  .label = {ModelPart::kContextParallel, "context.pack"}});
  Tensor gathered = allocate_key_values(context, layout, seq, "context.gathered");
  context.groups.context.all_gather(own, gathered,
                                    {ModelPart::kContextParallel, "context.gather_key_values"});
  own = Tensor();
  Tensor ordered = allocate_key_values(context, layout, seq, "context.key_values");
  reorder_chunks(context, gathered, ordered, true);
  return ordered;
}

void reduce_key_values(const RankContext& context, const QkvLayout& layout, Tensor gradients,
                       const Tensor& dqkv) {
  Tensor by_rank =
      allocate_key_values(context, layout, context.model.seq, "context.key_value_gradients");
  reorder_chunks(context, by_rank, gradients, false);
  gradients = Tensor();
  const Tensor own =
      allocate_key_values(context, layout, local_sizes(context).seq, "context.key_value_gradients");
  context.groups.context.reduce_scatter(by_rank, own,
                                        {ModelPart::kContextParallel, "context.reduce_key_values"});
  by_rank = Tensor();
  context.device.run(CopyMatrices{.from = packed_key_values(layout, own),
                                  .to = key_values_in(layout, dqkv),
                                  .inner = key_value_pieces(layout),
                                  .label = {ModelPart::kContextParallel, "context.unpack"}});
}

}  // namespace tpsim
