#include "sim/expert_prices.h"

#include <algorithm>
#include <cmath>

#include "reference_model/experts.h"
#include "sim/normal.h"

namespace tpsim {
namespace {

// Standard deviation of experts' shares of the tokens of a micro-batch over their mean, once a
// router's auxiliary loss or biases have settled.
constexpr double kNaturalSpread = 0.3;

// How a dispatcher's kernels copy: processors that the launcher gives them, and what one moves.
struct CopyKernel {
  double processors = 0;
  BytesPerSecond each;
};
constexpr CopyKernel kDeepEp{20, BytesPerSecond(14e9)};
constexpr CopyKernel kHybridEp{16, BytesPerSecond(27e9)};

bool sends_once(Dispatcher dispatcher) {
  return dispatcher == Dispatcher::kDeepEp || dispatcher == Dispatcher::kHybridEp;
}

// That none of k choices out of `experts` falls into one of `parts` parts.
double share_missed(const ExpertShape& experts, std::int64_t parts) {
  const double all = static_cast<double>(experts.count);
  const double others = all - all / static_cast<double>(parts);
  double missed = 1;
  for (std::int64_t i = 0; i < experts.per_token; ++i) {
    const auto drawn = static_cast<double>(i);
    missed *= std::max(0.0, others - drawn) / (all - drawn);
  }
  return missed;
}

}  // namespace

double busiest_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  if (!has_experts(model) || plan.degrees.ep == 1) return 1;
  if (stack.parts.expert_load != kNaturalLoad) {
    return static_cast<double>(stack.parts.expert_load) / static_cast<double>(kBalancedLoad);
  }
  return busiest_load(model, plan, kNaturalSpread);
}

double busiest_load(const ModelSpec& model, const Plan& plan, double spread) {
  const std::int64_t ranks = plan.degrees.ep;
  if (!has_experts(model) || ranks == 1) return 1;
  const std::int64_t each = model.experts.count / ranks;  // ep divides them
  const auto experts_each = static_cast<double>(each);
  // No rank gets more than all tokens.
  const double most = 1 + spread / std::sqrt(experts_each) * expected_maximum(ranks);
  return std::min(static_cast<double>(ranks), most);
}

double parts_reached(const ExpertShape& experts, std::int64_t parts) {
  const auto n = static_cast<double>(parts);
  const double reached = n * (1 - share_missed(experts, parts));
  const RouterShape& router = experts.router;
  if (router.groups <= 1) return reached;
  const double kept = static_cast<double>(router.groups_kept);
  const double parts_of_group = std::max(1.0, n / static_cast<double>(router.groups));
  return std::min(reached, kept * parts_of_group);
}

Seconds dispatch_time(const Scenario& scenario, const CollectiveCostModel& collectives,
                      const CollectiveRecord& record, const GroupPlacement& group) {
  const ExpertShape& experts = scenario.model.experts;
  const Dispatcher dispatcher = scenario.stack.parts.dispatcher;
  const Bytes copies(static_cast<double>(record.bytes));
  if (dispatcher == Dispatcher::kAllToAll) {
    return collectives.price(CollectiveKind::kAllToAll, copies, group);
  }
  const Bytes once = (1 / static_cast<double>(experts.per_token)) * copies;
  if (!sends_once(dispatcher)) {
    const Bytes all = static_cast<double>(group.ranks) * once;
    return collectives.price(CollectiveKind::kAllGather, all, group);
  }
  const auto others = [](std::int64_t n) {
    return static_cast<double>(n - 1) / static_cast<double>(n);
  };
  const double to_nodes =
      group.nodes > 1 ? others(group.nodes) * parts_reached(experts, group.nodes) : 0;
  const double to_ranks = others(group.ranks_per_node) * parts_reached(experts, group.ranks);
  const CopyKernel kernel = dispatcher == Dispatcher::kDeepEp ? kDeepEp : kHybridEp;
  return collectives.price_dispatch(to_nodes * once, to_ranks * once,
                                    kernel.processors * kernel.each, group);
}

void grow_arrivals(Program& program, const ModelSpec& model, double load) {
  if (!model.experts.dropless || load <= 1) return;
  for (AllocationRecord& allocation : program.allocations) {
    if (!holds_arrived_tokens(allocation.label)) continue;
    allocation.bytes = std::llround(load * static_cast<double>(allocation.bytes));
  }
}

bool waits_for_busiest(const Label& label) {
  return label.part == ModelPart::kExperts || label.part == ModelPart::kExpertActivation ||
         label.part == ModelPart::kPermutation || label.part == ModelPart::kDispatch;
}

bool is_left_to_dispatcher(const OpRecord& op, const StackSpec& stack) {
  const bool copies =
      op.key.kind == OpKind::kDispatchTokens || op.key.kind == OpKind::kCombineTokens;
  return copies && sends_once(stack.parts.dispatcher);
}

}  // namespace tpsim
