#include "sim/layers/expert_prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/base/normal.h"
#include "reference_model/layers/experts.h"

namespace tpsim {
namespace {

// Relative standard deviation of the experts' shares of a micro-batch's tokens, once the router's
// auxiliary loss or biases have converged.
constexpr double kNaturalSpread = 0.3;

// Copy kernels of a dispatcher: number of SMs that the launcher assigns, bytes per second and SM,
// and extra time per call (docs/experts.md).
struct CopyKernel {
  double processors = 0;
  BytesPerSecond each;
  Seconds call;
};
constexpr CopyKernel kDeepEp{20, BytesPerSecond(14e9), Seconds()};
constexpr CopyKernel kHybridEp{16, BytesPerSecond(37e9), Seconds(60e-6)};

// Returns the probability that a token with k distinct random experts has none in a given one of
// `parts` equal parts.
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

// Returns the binomial coefficient.
double ways(std::int64_t count, std::int64_t chosen) {
  if (chosen > count) return 0;
  double sets = 1;
  for (std::int64_t i = 0; i < chosen; ++i) {
    sets *= static_cast<double>(count - i) / static_cast<double>(i + 1);
  }
  return sets;
}

// Returns the number of ways to choose items from `groups` groups of `each` items, with at least
// one item from every group. Inclusion-exclusion over the groups without a chosen item.
double ways_in_all(std::int64_t groups, std::int64_t each, std::int64_t chosen) {
  double sets = 0;
  for (std::int64_t without = 0; without <= groups; ++without) {
    const double sign = without % 2 == 0 ? 1 : -1;
    sets += sign * ways(groups, without) * ways((groups - without) * each, chosen);
  }
  return sets;
}

// Returns the expected number of parts of a kept group that contain any of a token's experts. Each
// kept group contains at least one chosen expert, since the router keeps groups for their best two
// experts.
double parts_of_kept_group(const ExpertShape& experts, std::int64_t parts) {
  const std::int64_t each = experts.count / experts.router.groups;
  const std::int64_t others = experts.router.groups_kept - 1;
  const std::int64_t elsewhere = each - each / parts;
  double all = 0, missed = 0;
  for (std::int64_t here = 1; here <= std::min(each, experts.per_token - others); ++here) {
    const double rest = ways_in_all(others, each, experts.per_token - here);
    all += ways(each, here) * rest;
    missed += ways(elsewhere, here) * rest;
  }
  return static_cast<double>(parts) * (1 - missed / all);
}

}  // namespace

Status check_load(const StackSpec& stack, const ModelSpec& model) {
  if (stack.parts.expert_load != kCountedLoad || !has_experts(model)) return Ok{};
  if (!model.experts.counts.empty()) return Ok{};
  return bad_input(
      fmt::format("expert_load is counted, but model {} has no token counts of its experts",
                  model.name),
      "", "give the counts with --expert-load FILE, or choose natural, balanced or a number");
}

double counted_load(const ExpertShape& experts, std::int64_t ranks) {
  const auto count = static_cast<std::size_t>(experts.count);
  const auto each = static_cast<std::ptrdiff_t>(experts.count / ranks);
  const std::size_t blocks = experts.counts.size() / count;
  double loads = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    auto next = experts.counts.begin() + static_cast<std::ptrdiff_t>(block * count);
    double most = 0, all = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank, next += each) {
      const double tokens = std::accumulate(next, next + each, 0.0);
      most = std::max(most, tokens);
      all += tokens;
    }
    loads += most * static_cast<double>(ranks) / all;
  }
  return loads / static_cast<double>(blocks);
}

double busiest_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  if (!has_experts(model) || plan.degrees.ep == 1) return 1;
  if (stack.parts.expert_load == kCountedLoad) return counted_load(model.experts, plan.degrees.ep);
  if (stack.parts.expert_load != kNaturalLoad) {
    return static_cast<double>(stack.parts.expert_load) / static_cast<double>(kBalancedLoad);
  }
  return busiest_load(model, plan, kNaturalSpread);
}

double busiest_load(const ModelSpec& model, const Plan& plan, double spread) {
  const std::int64_t ranks = plan.degrees.ep;
  if (!has_experts(model) || ranks == 1) return 1;
  const std::int64_t each = model.experts.count / ranks;  // ep divides the experts
  const auto experts_each = static_cast<double>(each);
  // A rank cannot get more than all tokens.
  const double most = 1 + spread / std::sqrt(experts_each) * expected_maximum(ranks);
  return std::min(static_cast<double>(ranks), most);
}

double expected_destinations(const ExpertShape& experts, std::int64_t parts) {
  const auto n = static_cast<double>(parts);
  const RouterShape& router = experts.router;
  const bool is_limited = router.groups > router.groups_kept;
  if (!is_limited || experts.per_token < router.groups_kept) {
    return n * (1 - share_missed(experts, parts));
  }
  const std::int64_t kept = router.groups_kept;
  if (parts <= router.groups) {
    const std::int64_t held = router.groups / parts;
    return n * (1 - ways(router.groups - held, kept) / ways(router.groups, kept));
  }
  const std::int64_t in_group = parts / router.groups;
  return static_cast<double>(kept) * parts_of_kept_group(experts, in_group);
}

namespace {

// Bytes that a rank sends with one copy per token and destination that has any of the token's
// experts.
struct OnceSent {
  Bytes to_nodes, to_ranks;
  CopyKernel kernel;
};

OnceSent once_sent(const Scenario& scenario, Bytes once, const GroupPlacement& group) {
  const ExpertShape& experts = scenario.model.experts;
  const auto others = [](std::int64_t n) {
    return static_cast<double>(n - 1) / static_cast<double>(n);
  };
  const double nodes =
      group.nodes > 1 ? others(group.nodes) * expected_destinations(experts, group.nodes) : 0;
  const double ranks = others(group.ranks_per_node) * expected_destinations(experts, group.ranks);
  const bool is_deep = scenario.stack.parts.dispatcher == Dispatcher::kDeepEp;
  return {nodes * once, ranks * once, is_deep ? kDeepEp : kHybridEp};
}

// Returns the bytes of a rank's tokens, once each. The record counts k copies per token.
Bytes tokens_once(const Scenario& scenario, const CollectiveRecord& record) {
  const auto copies = static_cast<double>(scenario.model.experts.per_token);
  return Bytes(static_cast<double>(record.bytes) / copies);
}

// The collective that dispatches tokens, for dispatchers that use a collective.
struct PlainDispatch {
  CollectiveKind kind;
  Bytes bytes;
};

std::optional<PlainDispatch> plain_dispatch(const Scenario& scenario,
                                            const CollectiveRecord& record,
                                            const GroupPlacement& group) {
  switch (scenario.stack.parts.dispatcher) {
    case Dispatcher::kAllToAll:
      return PlainDispatch{CollectiveKind::kAllToAll, Bytes(static_cast<double>(record.bytes))};
    case Dispatcher::kAllGather:
      return PlainDispatch{CollectiveKind::kAllGather,
                           static_cast<double>(group.ranks) * tokens_once(scenario, record)};
    case Dispatcher::kDeepEp:
    case Dispatcher::kHybridEp: break;
  }
  return std::nullopt;
}

}  // namespace

Seconds dispatch_time(const Scenario& scenario, const CollectiveCostModel& collectives,
                      const CollectiveRecord& record, const GroupPlacement& group) {
  if (const auto plain = plain_dispatch(scenario, record, group)) {
    return collectives.price(plain->kind, plain->bytes, group);
  }
  const auto [to_nodes, to_ranks, kernel] =
      once_sent(scenario, tokens_once(scenario, record), group);
  const BytesPerSecond most = kernel.processors * kernel.each;
  return kernel.call + collectives.price_dispatch(to_nodes, to_ranks, most, group);
}

std::string explain_dispatch(const Scenario& scenario, const CollectiveCostModel& collectives,
                             const CollectiveRecord& record, const GroupPlacement& group) {
  if (const auto plain = plain_dispatch(scenario, record, group)) {
    return collectives.explain(plain->kind, plain->bytes, group);
  }
  const Bytes once = tokens_once(scenario, record);
  const auto [to_nodes, to_ranks, kernel] = once_sent(scenario, once, group);
  std::string text = fmt::format(
      "{} of {} of tokens over {} ranks: {} for {} to ranks of its node",
      scenario.stack.parts.dispatcher == Dispatcher::kDeepEp ? "DeepEP" : "HybridEP",
      to_string(once), group.ranks, to_string(dispatch_time(scenario, collectives, record, group)),
      to_string(to_ranks));
  if (group.nodes > 1) {
    text += fmt::format(" or {} to other nodes, whichever is slower", to_string(to_nodes));
  }
  text += fmt::format(
      ", one copy of a token per node or rank with its experts; {:.0f} SMs copy {} each",
      kernel.processors, to_string(kernel.each));
  if (kernel.call > Seconds()) text += fmt::format(", {} per call", to_string(kernel.call));
  return text;
}

void grow_arrivals(Program& program, const ModelSpec& model, double size) {
  if (!model.experts.dropless || size <= 1) return;
  for (AllocationRecord& allocation : program.allocations) {
    if (!is_dispatched_tokens(allocation.label)) continue;
    allocation.bytes = std::llround(size * static_cast<double>(allocation.bytes));
  }
}

double buffered_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  if (stack.parts.expert_capacity == kAnyTokens || !has_experts(model)) {
    return busiest_load(stack, model, plan);
  }
  return static_cast<double>(stack.parts.expert_capacity) / static_cast<double>(kBalancedLoad);
}

StashedBytes stashed_bytes(const LayerTrace& trace, const StackSpec& stack, const ModelSpec& model,
                           const Plan& plan) {
  const SoftwareParts& parts = stack.parts;
  const bool recomputes = plan.recompute == Recompute::kSelective;
  const std::int64_t modules = recomputes ? parts.recompute_modules : 0;
  if (parts.expert_stash == kNoStash || holds(modules, bit(RecomputeModule::kMoe))) return {};
  const auto [begin, end] = trace.span(Phase::kForward);
  StashedBytes bytes;
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    const bool allocates = event.kind == ProgramEvent::Kind::kAllocate;
    if (!allocates && event.kind != ProgramEvent::Kind::kFree) continue;
    const AllocationRecord& allocation = trace.program.allocations[event.index];
    const bool is_made_again = is_expert_activation(allocation.label) &&
                               holds(modules, bit(RecomputeModule::kExpertActivation));
    if (!is_dispatched_tokens(allocation.label) || is_made_again) continue;
    bytes.buffers += (allocates ? 1 : -1) * static_cast<double>(allocation.bytes);
  }
  bytes.tokens = bytes.buffers / std::max(1.0, buffered_load(stack, model, plan));
  bytes.stash =
      bytes.tokens * static_cast<double>(parts.expert_stash) / static_cast<double>(kBalancedLoad);
  return bytes;
}

void keep_in_stash(LayerMemory& memory, const StashedBytes& bytes) {
  using memory_index::kActivations;
  const double saved = bytes.buffers - bytes.stash;
  memory.forward.left[kActivations] -= saved;
  memory.forward.highest[kActivations] += bytes.stash;
  memory.forward.each[kActivations] += bytes.stash;
  memory.backward.left[kActivations] += saved;
  memory.backward.highest[kActivations] += bytes.buffers;
  memory.backward.each[kActivations] += bytes.buffers;
}

bool waits_for_busiest(const Label& label) {
  return label.part == ModelPart::kExperts || label.part == ModelPart::kExpertActivation ||
         label.part == ModelPart::kPermute || label.part == ModelPart::kDispatch;
}

bool is_left_to_dispatcher(const OpRecord& op, const StackSpec& stack) {
  const bool copies =
      op.key.kind == OpKind::kPermuteTokens || op.key.kind == OpKind::kUnpermuteTokens;
  const Dispatcher by = stack.parts.dispatcher;
  return copies && (by == Dispatcher::kDeepEp || by == Dispatcher::kHybridEp);
}

}  // namespace tpsim
