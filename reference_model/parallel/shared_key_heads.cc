#include "reference_model/parallel/shared_key_heads.h"

#include "core/plan/plan.h"

namespace tpsim {
namespace {

constexpr Label kGatherHeads{ModelPart::kTensorParallel, "attention.gather_heads"};
constexpr Label kReduceHeads{ModelPart::kColumnParallelBackward, "attention.reduce_heads"};
constexpr Label kPickHeads{ModelPart::kAttentionLinear, "attention.pick_heads"};

// The columns of a rank in the projection's output: its queries, then a slice of a key head, then a
// slice of a value head.
struct HeadColumns {
  std::int64_t rows = 0;
  std::int64_t queries = 0;  // query columns of a rank
  std::int64_t part = 0;     // columns of the slice of a key head
  std::int64_t width = 0;    // all columns of a rank
  std::int64_t head = 0;     // columns of a whole key head
  std::int64_t sharers = 0;  // ranks that share one head
  std::int64_t first = 0;    // first of the ranks that share this rank's head
};

HeadColumns columns_of_rank(const RankContext& context, const QkvLayout& layout,
                            std::int64_t rows) {
  const AttentionShape& attention = context.model.attention;
  const std::int64_t tp = context.plan.degrees.tp;
  HeadColumns columns;
  columns.rows = rows;
  columns.queries = layout.heads * layout.head_dim;
  columns.head = layout.head_dim;
  columns.part = attention.kv_heads * layout.head_dim / tp;
  columns.width = columns.queries + 2 * columns.part;
  columns.sharers = tp / attention.kv_heads;
  columns.first = context.at.tp / columns.sharers * columns.sharers;
  return columns;
}

// Returns a view of `count` columns, starting at column `at`, of rank `rank` and the ranks after it
// in the gathered tensor. The outer stride is one rank.
Matrix in_gathered(const HeadColumns& columns, const Tensor& all, std::int64_t rank,
                   std::int64_t at, std::int64_t count) {
  return {.tensor = all,
          .rows = columns.rows,
          .cols = count,
          .row_stride = columns.width,
          .offset = rank * columns.rows * columns.width + at,
          .outer_stride = columns.rows * columns.width};
}
Matrix in_heads(const HeadColumns& columns, const Tensor& qkv, std::int64_t at,
                std::int64_t count) {
  return {.tensor = qkv,
          .rows = columns.rows,
          .cols = count,
          .row_stride = columns.queries + 2 * columns.head,
          .offset = at,
          .outer_stride = count};
}

// Copies between the gathered tensor and this rank's heads: its own queries, then the slices of its
// key head and value head from each sharer.
void pick_heads(const RankContext& context, const HeadColumns& columns, const Tensor& all,
                const Tensor& qkv, bool to_heads) {
  const auto copy = [&](const Matrix& gathered, const Matrix& heads, std::int64_t pieces) {
    context.device.run(CopyMatrices{.from = to_heads ? gathered : heads,
                                    .to = to_heads ? heads : gathered,
                                    .outer = pieces,
                                    .label = kPickHeads});
  };
  copy(in_gathered(columns, all, context.at.tp, 0, columns.queries),
       in_heads(columns, qkv, 0, columns.queries), 1);
  for (const std::int64_t kind : {0, 1}) {
    copy(in_gathered(columns, all, columns.first, columns.queries + kind * columns.part,
                     columns.part),
         in_heads(columns, qkv, columns.queries + kind * columns.head, columns.part),
         columns.sharers);
  }
}

Tensor allocate_gathered(const RankContext& context, const HeadColumns& columns) {
  return allocate_activation(context, {context.plan.degrees.tp, columns.rows, columns.width},
                             kGatherHeads.text);
}

}  // namespace

bool shares_key_heads(const RankContext& context) {
  return context.plan.degrees.tp > context.model.attention.kv_heads &&
         context.model.attention.kv_heads > 0;
}

Tensor gather_key_heads(const RankContext& context, const QkvLayout& layout, const Tensor& columns,
                        Tensor& gathered) {
  const HeadColumns of_rank = columns_of_rank(context, layout, columns.rows());
  gathered = allocate_gathered(context, of_rank);
  context.groups.tensor.all_gather(columns, gathered, kGatherHeads);
  Tensor qkv = allocate_activation(
      context, {columns.shape()[0], columns.shape()[1], qkv_width(layout)}, kPickHeads.text);
  pick_heads(context, of_rank, gathered, qkv, true);
  return qkv;
}

Tensor scatter_key_heads(const RankContext& context, const QkvLayout& layout, const Tensor& dqkv) {
  const HeadColumns of_rank = columns_of_rank(context, layout, dqkv.rows());
  Tensor all = allocate_gathered(context, of_rank);
  context.device.run(Fill{all, 0.0F, kPickHeads});
  pick_heads(context, of_rank, all, dqkv, false);
  Tensor columns = allocate_activation(context, {dqkv.shape()[0], dqkv.shape()[1], of_rank.width},
                                       kReduceHeads.text);
  context.groups.tensor.reduce_scatter(all, columns, kReduceHeads);
  return columns;
}

}  // namespace tpsim
