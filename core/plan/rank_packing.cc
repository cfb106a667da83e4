#include "core/plan/rank_packing.h"

namespace tpsim {

bool RankNodes::suits(const Plan& plan) const {
  if (degrees.tp > 0) return degrees == plan.degrees && rank_order == plan.rank_order;
  return std::ssize(node_of) == gpu_count(plan);
}

std::vector<std::int64_t> block_sizes(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  const bool stages_last = plan.rank_order == RankOrder::kTpDpPp;
  const std::int64_t experts = stages_last ? expert_tensor_ranks(plan) * d.ep : 1;
  std::vector<std::int64_t> sizes = {1};
  for (const std::int64_t size :
       {d.tp, d.tp * d.cp, experts, d.tp * d.cp * (stages_last ? d.dp : d.pp)}) {
    if (size > sizes.back() && size % sizes.back() == 0) sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::int32_t> packed(std::int64_t ranks, const std::vector<std::int64_t>& blocks,
                                 std::vector<std::int64_t> free_gpus,
                                 const std::vector<std::size_t>& order) {
  std::vector<std::int32_t> node_of(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> waiting = {0};  // first ranks of blocks without a node
  std::int64_t before = ranks;              // size of these blocks
  for (auto size = blocks.rbegin(); size != blocks.rend(); ++size) {
    std::vector<std::int64_t> split;
    for (const std::int64_t first : waiting) {
      for (std::int64_t at = first; at < first + before; at += *size) split.push_back(at);
    }
    auto next = split.begin();
    for (const std::size_t node : order) {
      for (; next != split.end() && free_gpus[node] >= *size; ++next) {
        free_gpus[node] -= *size;
        std::fill_n(node_of.begin() + *next, *size, static_cast<std::int32_t>(node));
      }
    }
    waiting.assign(next, split.end());
    before = *size;
  }
  return node_of;
}

std::vector<std::int32_t> packed(const Plan& plan, const std::vector<NodeShape>& nodes) {
  std::vector<std::int64_t> free_gpus;
  for (const NodeShape& node : nodes) free_gpus.push_back(node.gpus);
  return packed(
      gpu_count(plan), block_sizes(plan), std::move(free_gpus),
      node_order(nodes, [](const NodeShape& a, const NodeShape& b) { return a.gpus > b.gpus; }));
}

}  // namespace tpsim
