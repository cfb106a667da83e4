#include "sim/layers/dispatch_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tpsim {
namespace {

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

// Bytes that a rank sends with one copy per token and destination that has any of the token's
// experts.
struct OnceSent {
  Bytes to_nodes, to_ranks;
  CopyKernel kernel;
};

// Returns the bytes of a rank's tokens, once each. The record counts k copies per token.
Bytes tokens_once(const ExpertShape& experts, const CollectiveRecord& record) {
  return Bytes(static_cast<double>(record.bytes) / static_cast<double>(experts.per_token));
}

bool is_deep(const LoweredCollective& record) { return record.dispatcher == Dispatcher::kDeepEp; }

OnceSent once_sent(const ExpertShape& experts, const LoweredCollective& record,
                   const GroupPlacement& group) {
  const Bytes once = tokens_once(experts, record);
  const auto others = [](std::int64_t n) {
    return static_cast<double>(n - 1) / static_cast<double>(n);
  };
  const double nodes =
      group.nodes > 1 ? others(group.nodes) * expected_destinations(experts, group.nodes) : 0;
  const double ranks = others(group.ranks_per_node) * expected_destinations(experts, group.ranks);
  return {nodes * once, ranks * once, is_deep(record) ? kDeepEp : kHybridEp};
}

// The collective that dispatches tokens, for dispatchers that use a collective.
struct PlainDispatch {
  CollectiveKind kind;
  Bytes bytes;
};

std::optional<PlainDispatch> plain_dispatch(const ExpertShape& experts,
                                            const LoweredCollective& record,
                                            const GroupPlacement& group) {
  switch (record.dispatcher) {
    case Dispatcher::kAllToAll:
      return PlainDispatch{CollectiveKind::kAllToAll, Bytes(static_cast<double>(record.bytes))};
    case Dispatcher::kAllGather:
      return PlainDispatch{CollectiveKind::kAllGather,
                           static_cast<double>(group.ranks) * tokens_once(experts, record)};
    case Dispatcher::kDeepEp:
    case Dispatcher::kHybridEp: break;
  }
  return std::nullopt;
}

}  // namespace

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

Seconds dispatch_time(const ExpertShape& experts, const CollectiveCostModel& collectives,
                      const LoweredCollective& record, const GroupPlacement& group) {
  if (const auto plain = plain_dispatch(experts, record, group)) {
    return collectives.price(plain->kind, plain->bytes, group);
  }
  const auto [to_nodes, to_ranks, kernel] = once_sent(experts, record, group);
  const BytesPerSecond most = kernel.processors * kernel.each;
  return kernel.call + collectives.price_dispatch(to_nodes, to_ranks, most, group);
}

std::string explain_dispatch(const ExpertShape& experts, const CollectiveCostModel& collectives,
                             const LoweredCollective& record, const GroupPlacement& group) {
  if (const auto plain = plain_dispatch(experts, record, group)) {
    return collectives.explain(plain->kind, plain->bytes, group);
  }
  const auto [to_nodes, to_ranks, kernel] = once_sent(experts, record, group);
  std::string text = fmt::format(
      "{} of {} of tokens over {} ranks: {} for {} to ranks of its node",
      is_deep(record) ? "DeepEP" : "HybridEP", to_string(tokens_once(experts, record)), group.ranks,
      to_string(dispatch_time(experts, collectives, record, group)), to_string(to_ranks));
  if (group.nodes > 1) {
    text += fmt::format(" or {} to other nodes, whichever is slower", to_string(to_nodes));
  }
  text += fmt::format(
      ", one copy of a token per node or rank with its experts; {:.0f} SMs copy {} each",
      kernel.processors, to_string(kernel.each));
  if (kernel.call > Seconds()) text += fmt::format(", {} per call", to_string(kernel.call));
  return text;
}

}  // namespace tpsim
