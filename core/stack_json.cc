#include "core/stack_json.h"

#include <algorithm>

#include "core/json_document.h"
#include "core/json_fields.h"

namespace tpsim {
namespace {

constexpr auto kTrainingFields = [](auto& io, auto& training) {
  io.choice("gradient_reduction", training.gradient_reduction,
            {GradientReduction::kAllReduce, GradientReduction::kReduceScatter});
  io.flag("fused_gradient_accumulation", training.fused_gradient_accumulation);
  io.flag("widened_optimizer_gradients", training.widened_optimizer_gradients, kOptional);
  io.flag("overlap_gradient_reduction", training.overlap_gradient_reduction);
  io.flag("overlap_parameter_gather", training.overlap_parameter_gather);
  io.flag("clip_gradients", training.clip_gradients);
  io.flag("wide_logits", training.wide_logits, kOptional);
  io.flag("scatter_gather_transfers", training.scatter_gather_transfers);
};

constexpr auto kHostFields = [](auto& io, auto& host) {
  io.quantity("per_op", host.per_op);
  io.quantity("per_collective", host.per_collective);
  io.quantity("per_block_forward", host.per_block_forward);
  io.quantity("per_block_backward", host.per_block_backward);
  io.quantity("per_micro_batch", host.per_micro_batch);
  io.quantity("per_step", host.per_step);
  io.flag("blocking_launches", host.blocking_launches, kOptional);
};

constexpr auto kMemoryFields = [](auto& io, auto& memory) {
  io.quantity("context", memory.context);
  io.quantity("library_workspace", memory.library_workspace);
  io.quantity("collective_buffers", memory.collective_buffers);
  io.quantity("allocation_granularity", memory.allocation_granularity);
  io.integer("reduction_bucket", memory.reduction_bucket, {0, 1'000'000'000'000}, kOptional);
  io.flag("gradient_stand_ins", memory.gradient_stand_ins, kOptional);
  io.flag("caching_allocator", memory.caching_allocator, kOptional);
  io.number("fragmentation", memory.fragmentation, {0, 1});
  io.number("spread", memory.spread, {0.0001, 1});
  io.require(memory.allocation_granularity.value() >= 1, "allocation_granularity",
             "it must be at least one byte");
};

constexpr auto kChoiceFields = [](auto& io, auto& choices) {
  io.text("source", choices.source);
  io.choices("rank_orders", choices.rank_orders, {RankOrder::kTpDpPp, RankOrder::kTpPpDp});
  io.choices("recompute", choices.recompute,
             {Recompute::kNone, Recompute::kSelective, Recompute::kFull, Recompute::kBlocks});
  io.choices("offload", choices.offload, {Offload::kNone, Offload::kOptimizer});
};

constexpr auto kStackFields = [](auto& io, auto& stack) {
  io.format("tpsim-stack/1");
  io.text("name", stack.name);
  io.text("source", stack.source);
  io.object("training", [&](auto& inner) { kTrainingFields(inner, stack.training); });
  io.object("host", [&](auto& inner) { kHostFields(inner, stack.host); });
  io.object("memory", [&](auto& inner) { kMemoryFields(inner, stack.memory); });
  io.object(
      "choices", [&](auto& inner) { kChoiceFields(inner, stack.choices); }, kOptional);
  io.flag("zero_2_and_3_with_pipeline", stack.zero_2_and_3_with_pipeline);
  io.number("tensor_overlap", stack.tensor_overlap, {0, 1}, kOptional);
  io.flag("overlap_p2p", stack.overlap_p2p);
  io.number("eager_traffic", stack.eager_traffic, {1, 10}, kOptional);
  io.number("flash_speed", stack.flash_speed, {0.01, 10}, kOptional);
  io.number("overlap_slowdown", stack.overlap_slowdown, {1, 10});
  io.number("rank_jitter", stack.rank_jitter, {0, 1});
  io.number("run_spread", stack.run_spread, {0, 1});
  io.number("residual_spread", stack.residual_spread, {0, 1});
};

template <class E>
bool holds(const std::vector<E>& values, E value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Result<StackSpec> stack_from_json(const JsonValue& root, const std::string& file) {
  return spec_from_json<StackSpec>(root, file, kStackFields);
}

}  // namespace

Result<StackSpec> read_stack(const std::filesystem::path& path) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  return stack_from_json(root, path.string());
}

Result<StackSpec> parse_stack(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return stack_from_json(root, file);
}

std::string to_json(const StackSpec& stack) { return to_text(json_from_spec(stack, kStackFields)); }

std::string reason_against(const StackChoices& choices, const Plan& plan) {
  if (!holds(choices.rank_orders, plan.rank_order)) return "the stack has no such rank order";
  if (!holds(choices.recompute, plan.recompute)) return "the stack has no such recompute";
  if (!holds(choices.offload, plan.offload)) return "the stack has no such offload";
  return "";
}

std::string_view name_of(GradientReduction reduction) {
  return reduction == GradientReduction::kAllReduce ? "all_reduce" : "reduce_scatter";
}

}  // namespace tpsim
