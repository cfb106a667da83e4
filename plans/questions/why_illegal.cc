#include "plans/questions/why_illegal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/software/launch_rules.h"
#include "core/software/part_rules.h"
#include "plans/search/allowed_values.h"
#include "plans/search/enumerate.h"

namespace tpsim {
namespace {

// Reasons in the order of the checks in plans/search/enumerate.cc. Reasons that only skip
// equivalent plans are in kRepeats.
constexpr std::array<std::string_view, 6> kByDegrees = {
    "heads or widths do not divide by tp", "the sequence does not divide by 2 x cp",
    "the sequence does not divide by tp",  "fewer layers than stages",
    "global batch does not divide by dp",  "tensors too large to count"};
constexpr std::string_view kWholeSequences =
    "recurrent layers do not support context parallelism here";
constexpr std::string_view kInterleaving =
    "interleaved schedule needs micro-batches in multiples of pp";
constexpr std::array<std::string_view, 4> kRepeats = {
    "another rank order gives the same placement", "ZeRO without data parallelism",
    "flash attention stores no probabilities, so selective recompute changes nothing",
    "sequence parallelism without tensor parallelism"};
constexpr std::string_view kStages = "the stack cannot build these stages";

// Returns the number of checks that a combination passes before this reason rejects it. -1 if the
// reason only skips equivalent plans.
int depth_of(const StackSpec& stack, const std::string& reason) {
  const auto among = [&](const auto& all) {
    return std::find(all.begin(), all.end(), reason) != all.end();
  };
  if (among(kRepeats)) return -1;
  const auto by_degrees = std::find(kByDegrees.begin(), kByDegrees.end(), reason);
  if (by_degrees != kByDegrees.end()) return static_cast<int>(by_degrees - kByDegrees.begin());
  if (reason == kWholeSequences) return 1;  // same check as the other limits of cp
  constexpr int kPastDegrees = static_cast<int>(kByDegrees.size());
  if (reason == kInterleaving) return kPastDegrees;
  if (reason == kStages) return kPastDegrees + 2;
  const std::vector<const LaunchRule*> rules = rules_of(stack.launcher, RuleScope::kPlan);
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const LaunchRule* one) { return reason == refusal_of(*one); });
  if (rule != rules.end() || part_rule_of(reason) != nullptr) {
    return kPastDegrees + 4 + static_cast<int>(rule - rules.begin());
  }
  const bool is_late = reason == tpsim::refusal_reason(Setting::kZero) ||
                       reason == tpsim::refusal_reason(Setting::kRankOrder) ||
                       reason == "the stack refuses ZeRO 2 and 3 with pipelines";
  return kPastDegrees + (is_late ? 3 : 1);
}

// Lists the largest dp values that do not divide the batch, of layouts whose tp divides the model's
// heads and widths.
std::string degrees_text(const Scenario& scenario, const SearchSpace& space) {
  std::set<std::int64_t, std::greater<>> all;
  for (const std::int64_t tp : divisors(space.gpus)) {
    const bool fits = divides_by_tp(scenario.model, tp);
    if (!fits || !is_allowed(scenario, space, {Setting::kTp, tp})) continue;
    for (const std::int64_t pp : divisors(space.gpus / tp)) {
      const std::int64_t dp = space.gpus / tp / pp;
      const bool divides = space.global_batch % dp == 0;
      if (!divides && is_allowed(scenario, space, {Setting::kPp, pp})) all.insert(dp);
    }
  }
  constexpr std::size_t kShown = 4;
  std::string text;
  std::size_t shown = 0;
  for (const std::int64_t dp : all) {
    if (++shown > kShown) return text + " ...";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", dp);
  }
  return text;
}

std::string values_text(const Scenario& scenario, Setting setting) {
  const SettingRow& row = row_of(setting);
  const auto text = [&](std::int64_t value) { return text_of({row.setting, value}); };
  return fmt::format("stack {} supports {} {}", scenario.stack.name, option_of(setting),
                     joined_text(scenario.stack.choices.only[setting], ", ", text));
}

// Returns the numbers that explain a reason; empty if there are none.
std::string numbers_of(const Scenario& scenario, const SearchSpace& space,
                       const std::string& reason) {
  const ModelSpec& model = scenario.model;
  if (reason == kByDegrees[0]) {
    return fmt::format("{} attention heads, {} key/value heads, hidden size {}, FFN size {}",
                       model.attention.heads, model.attention.kv_heads, count_text(model.hidden),
                       count_text(model.ffn_hidden));
  }
  if (reason == kByDegrees[1] || reason == kByDegrees[2]) {
    return fmt::format("{} tokens", count_text(model.seq));
  }
  if (reason == kByDegrees[3]) return fmt::format("{} layers", model.layers);
  if (reason == kByDegrees[4]) {
    return fmt::format("the batch has {} sequences; layouts of these GPUs have dp = {}",
                       count_text(space.global_batch), degrees_text(scenario, space));
  }
  if (reason == kInterleaving) {
    return fmt::format("a step has {} sequences", count_text(space.global_batch));
  }
  if (const PartRule* const rule = part_rule_of(reason)) {
    return fmt::format("stack {}: {}", scenario.stack.name, rule->why);
  }
  for (const RuleScope scope : {RuleScope::kModel, RuleScope::kPlan}) {
    for (const LaunchRule* rule : rules_of(scenario.stack.launcher, scope)) {
      if (reason == refusal_of(*rule)) {
        return fmt::format("stack {}: {}", scenario.stack.name, rule->why);
      }
    }
  }
  for (const SettingRow& row : setting_rows()) {
    if (row.kind != FieldKind::kList && reason == tpsim::refusal_reason(row.setting)) {
      return values_text(scenario, row.setting);
    }
  }
  return "";
}

// Returns the nearest divisors of `whole` below and above a value that does not divide it, such as
// "nearest: 32, 64".
std::string nearest_divisors(std::int64_t whole, std::int64_t value) {
  const std::vector<std::int64_t> all = divisors(whole);
  const auto above = std::upper_bound(all.begin(), all.end(), value);
  std::string text;
  if (above != all.begin()) text = count_text(*(above - 1));
  if (above != all.end()) text += (text.empty() ? "" : ", ") + count_text(*above);
  return "nearest: " + text;
}

// Returns the requested degree, or product of degrees, that makes every layout impossible. Empty if
// there is none.
std::string undivided(const Scenario& scenario, const SearchSpace& space) {
  constexpr std::array kDegrees = {Setting::kTp, Setting::kPp, Setting::kDp, Setting::kCp};
  std::int64_t product = 1;
  std::string names;
  std::size_t fixed = 0;
  for (const Setting degree : kDegrees) {
    if (space.asked[degree].size() != 1) continue;
    product *= space.asked[degree].front();
    names += (names.empty() ? "" : " x ") + std::string(row_of(degree).key);
    ++fixed;
  }
  const bool is_all = fixed == kDegrees.size();
  if (is_all && product != space.gpus) {
    return fmt::format("{} = {}, but the product must be {}", names, count_text(product),
                       gpus_text(space.gpus));
  }
  if (fixed > 0 && space.gpus % product != 0) {
    return fmt::format("{} = {} does not divide {} ({})", names, count_text(product),
                       gpus_text(space.gpus), nearest_divisors(space.gpus, product));
  }
  const std::vector<std::int64_t>& micro_batch = space.asked[Setting::kMicroBatch];
  const std::vector<std::int64_t>& dp = space.asked[Setting::kDp];
  const std::int64_t own = dp.size() == 1 ? space.global_batch / dp.front() : space.global_batch;
  if (own > 0 && micro_batch.size() == 1 && own % micro_batch.front() != 0) {
    return fmt::format("micro-batch = {} does not divide the {} sequences of {} ({})",
                       count_text(micro_batch.front()), count_text(own),
                       dp.size() == 1 ? "a data-parallel rank" : "a step",
                       nearest_divisors(own, micro_batch.front()));
  }
  const std::vector<std::int64_t>& ep = space.asked[Setting::kEp];
  if (ep.size() != 1 || !has_experts(scenario.model)) return "";
  const std::int64_t experts = scenario.model.experts.count;
  if (experts % ep.front() != 0) {
    return fmt::format("ep = {} does not divide the {} experts ({})", ep.front(), experts,
                       nearest_divisors(experts, ep.front()));
  }
  if (space.asked[Setting::kPp].size() != 1) return "";
  const std::int64_t ranks = space.gpus / space.asked[Setting::kPp].front();
  if (ranks % ep.front() == 0) return "";
  return fmt::format("ep = {} does not divide the {} ranks of a stage ({})", ep.front(),
                     count_text(ranks), nearest_divisors(ranks, ep.front()));
}

}  // namespace

std::string batch_reason(const Scenario& scenario, const SearchSpace& space) {
  const std::string reason(kByDegrees[4]);
  return fmt::format("{} ({})", reason, numbers_of(scenario, space, reason));
}

std::string deciding_reason(const Scenario& scenario, const SearchSpace& space,
                            const SearchResult& found) {
  const auto further = [&](const auto& a, const auto& b) {
    return std::pair(depth_of(scenario.stack, a.first), a.second) <
           std::pair(depth_of(scenario.stack, b.first), b.second);
  };
  const auto last = std::max_element(found.pruned.begin(), found.pruned.end(), further);
  if (last == found.pruned.end()) return undivided(scenario, space);
  const std::string numbers = numbers_of(scenario, space, last->first);
  return numbers.empty() ? last->first : fmt::format("{} ({})", last->first, numbers);
}

}  // namespace tpsim
