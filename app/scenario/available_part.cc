#include "app/scenario/available_part.h"

#include <algorithm>

#include "frameworks/launch/held_settings.h"

namespace tpsim::app {
namespace {

constexpr PartWord kPartWords[] = {
    {StackPart::kGradientSync, "every_micro_batch", true},
    {StackPart::kLossHead, "fused", true},
    {StackPart::kLossHead, "chunked", true},
    {StackPart::kLossHead, "vocab_parallel_fused"},
    {StackPart::kDispatcher, "hybridep"},
    {StackPart::kDispatcher, "deepep"},
    {StackPart::kRouterKernel, "fused"},
    {StackPart::kPermute, "fused"},
    {StackPart::kEpOverlap, "on"},
    {StackPart::kTpOverlap, "userbuffers"},
    {StackPart::kOverlapGradientReduction, "on"},
    {StackPart::kCudaGraphs, "attn"},
    {StackPart::kCudaGraphs, "attn,moe_router,moe_preprocess"},
    {StackPart::kCompile, "on"},
};

bool is_of_experts(StackPart part) {
  return part == StackPart::kDispatcher || part == StackPart::kRouterKernel ||
         part == StackPart::kPermute || part == StackPart::kEpOverlap;
}

}  // namespace

std::span<const PartWord> part_words() { return kPartWords; }

std::optional<std::int64_t> open_value(const NamedScenario& named, const PartWord& one) {
  const StackSpec& stack = named.scenario.stack;
  // A single value in `tried` is one that the search chose for a likely plan (faster_parts()).
  const bool is_tried = !named.tried.empty() && named.tried.front().parts.contains(one.part);
  const bool is_chosen = is_tried && named.tried.size() == 1;
  const bool is_varied = stack.choices.parts.contains(one.part) ||
                         (!is_chosen && (is_tried || named.parts.contains(one.part)));
  if (is_varied || (is_of_experts(one.part) && !has_experts(named.scenario.model))) {
    return std::nullopt;
  }
  const PartRow& row = row_of(one.part);
  const std::int64_t value = parse_value(row, one.word).value();
  const std::optional<LaunchStack> launcher = launch_stack_of(stack.launcher, stack.name);
  const bool is_written = !launcher || held(*launcher, one.part, value) == Held::kWritten;
  if (!is_written || row.get(stack) == value) return std::nullopt;
  return value;
}

PartValues held_parts(const NamedScenario& named) {
  PartValues parts;
  for (const PartWord& one : part_words()) {
    if (open_value(named, one)) parts[one.part] = row_of(one.part).get(named.scenario.stack);
  }
  return parts;
}

}  // namespace tpsim::app
