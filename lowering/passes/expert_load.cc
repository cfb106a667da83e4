#include "lowering/passes/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/normal.h"

namespace tpsim {
namespace {

// Relative standard deviation of the experts' shares of a micro-batch's tokens, once the router's
// auxiliary loss or biases have converged.
constexpr double kNaturalSpread = 0.3;

}  // namespace

std::string load_text(const StackSpec& stack) {
  return text_of(row_of(StackPart::kExpertLoad), stack.parts.expert_load);
}

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

double buffered_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  if (stack.parts.expert_capacity == kAnyTokens || !has_experts(model)) {
    return busiest_load(stack, model, plan);
  }
  return static_cast<double>(stack.parts.expert_capacity) / static_cast<double>(kBalancedLoad);
}

}  // namespace tpsim
