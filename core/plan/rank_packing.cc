#include "core/plan/rank_packing.h"

#include <algorithm>
#include <numeric>

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

std::vector<std::size_t> by_size(const std::vector<NodeShape>& nodes, bool is_largest_first) {
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return is_largest_first ? nodes[a].gpus > nodes[b].gpus : nodes[a].gpus < nodes[b].gpus;
  });
  return order;
}

std::vector<std::int32_t> packed(const Plan& plan, const std::vector<NodeShape>& nodes,
                                 const std::vector<std::int64_t>& blocks,
                                 const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> idle;
  for (const NodeShape& node : nodes) idle.push_back(node.gpus);
  std::int64_t before = gpu_count(plan);  // size of the blocks without a node
  std::vector<std::int32_t> node_of(static_cast<std::size_t>(before));
  std::vector<std::int64_t> waiting = {0};  // their first ranks
  for (auto size = blocks.rbegin(); size != blocks.rend(); ++size) {
    std::vector<std::int64_t> split;
    for (const std::int64_t first : waiting) {
      for (std::int64_t at = first; at < first + before; at += *size) split.push_back(at);
    }
    auto next = split.begin();
    for (const std::size_t node : order) {
      for (; next != split.end() && idle[node] >= *size; ++next) {
        idle[node] -= *size;
        std::fill_n(node_of.begin() + *next, *size, static_cast<std::int32_t>(node));
      }
    }
    waiting.assign(next, split.end());
    before = *size;
  }
  for (std::size_t node = 0; node < idle.size(); ++node) {
    node_of.insert(node_of.end(), static_cast<std::size_t>(idle[node]),
                   static_cast<std::int32_t>(node));
  }
  return node_of;
}

}  // namespace tpsim
