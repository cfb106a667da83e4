#include "core/software/stack_json.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/software/part_fields.h"
#include "core/software/part_rules.h"
#include "core/software/setting_fields.h"

namespace tpsim {
namespace {

template <class Io>
constexpr bool kReads = std::is_same_v<std::remove_reference_t<Io>, FieldReader>;

// Reads software parts from "training", where old stack files have them instead of in "parts".
void old_training_fields(FieldReader& in, StackSpec& stack) {
  TrainingOptions& training = stack.training;
  in.choice("gradient_reduction", training.gradient_reduction,
            {GradientReduction::kAllReduce, GradientReduction::kReduceScatter}, kOptional);
  stack.parts.sync = training.gradient_reduction == GradientReduction::kAllReduce
                         ? DataParallelSync::kAllReduce
                         : DataParallelSync::kReduceScatter;
  in.flag("fused_gradient_accumulation", training.fused_gradient_accumulation, kOptional);
  in.flag("overlap_gradient_reduction", training.overlap_gradient_reduction, kOptional);
  in.flag("overlap_parameter_gather", training.overlap_parameter_gather, kOptional);
  in.flag("wide_logits", training.wide_logits, kOptional);
  in.flag("scatter_gather_transfers", training.scatter_gather_transfers, kOptional);
}

constexpr auto kTrainingFields = [](auto& io, auto& stack) {
  io.flag("widened_optimizer_gradients", stack.training.widened_optimizer_gradients, kOptional);
  io.flag("clip_gradients", stack.training.clip_gradients);
  if constexpr (kReads<decltype(io)>) old_training_fields(io, stack);
};

constexpr auto kPartFields = [](auto& io, auto& stack) {
  for (const PartRow& row : part_rows()) {
    std::int64_t value = row.get(stack);
    part_field(io, row, value);
    if constexpr (kReads<decltype(io)>) row.set(stack, value);
  }
};

constexpr auto kHostFields = [](auto& io, auto& host) {
  io.quantity("per_op", host.per_op);
  io.when(host.per_block_op > Seconds(),
          [&](auto& inner) { inner.quantity("per_block_op", host.per_block_op, kOptional); });
  io.quantity("per_collective", host.per_collective);
  io.quantity("per_block_forward", host.per_block_forward);
  io.quantity("per_block_backward", host.per_block_backward);
  io.quantity("per_routing_forward", host.per_routing_forward, kOptional);
  io.quantity("per_routing_backward", host.per_routing_backward, kOptional);
  io.quantity("per_expert_forward", host.per_expert_forward, kOptional);
  io.quantity("per_expert_backward", host.per_expert_backward, kOptional);
  io.quantity("per_gather", host.per_gather, kOptional);
  io.quantity("per_transfer", host.per_transfer, kOptional);
  io.quantity("per_micro_batch", host.per_micro_batch);
  io.quantity("per_step", host.per_step);
  io.quantity("blocking_op", host.blocking_op, kOptional);
  io.quantity("blocking_collective", host.blocking_collective, kOptional);
};

constexpr auto kMemoryFields = [](auto& io, auto& memory) {
  io.quantity("context", memory.context);
  io.quantity("library_workspace", memory.library_workspace);
  io.quantity("collective_buffers", memory.collective_buffers);
  io.quantity("allocation_granularity", memory.allocation_granularity);
  io.integer("reduction_bucket", memory.reduction_bucket, {0, 1'000'000'000'000}, kOptional);
  io.flag("gradient_stand_ins", memory.gradient_stand_ins, kOptional);
  io.flag("layer_in_reduction", memory.layer_in_reduction, kOptional);
  io.flag("caching_allocator", memory.caching_allocator, kOptional);
  io.number("fragmentation", memory.fragmentation, {0, 1});
  io.number("spread", memory.spread, {0.0001, 1});
  io.require(memory.allocation_granularity.value() >= 1, "allocation_granularity",
             "it must be at least one byte");
};

constexpr auto kChoiceFields = [](auto& io, auto& choices) {
  io.text("source", choices.source);
  setting_list_fields(io, choices.only);
  auto parts = choices.parts;  // `choices` is const for a writer
  for (const PartRow& row : part_rows()) {
    if constexpr (kReads<decltype(io)>) {
      if (!io.has(row.key)) continue;
    }
    part_list_field(io, row, parts);
  }
  if constexpr (kReads<decltype(io)>) {
    choices.parts = std::move(parts);
    // Old stack files use this key.
    io.word_list("rank_orders", choices.only[Setting::kRankOrder],
                 row_of(Setting::kRankOrder).words, kOptional);
  }
};

constexpr auto kStackFields = [](auto& io, auto& stack) {
  io.format("tpsim-stack/1");
  io.text("name", stack.name);
  io.text("source", stack.source);
  io.text("known_as", stack.aliases, kOptional);
  io.choice("launcher", stack.launcher, every<Launcher>(), kOptional);
  io.integer("zero", stack.default_zero, {-1, 3}, kOptional);
  io.flag("sequence_parallel", stack.sequence_parallel, kOptional);
  io.choice("gradient_dtype", stack.gradient_dtype, {DType::kFloat32, DType::kBFloat16}, kOptional);
  io.flag("fp8_param_gather", stack.fp8_param_gather, kOptional);
  io.object("training", [&](auto& inner) { kTrainingFields(inner, stack); });
  io.object("host", [&](auto& inner) {
    kHostFields(inner, stack.host);
    if constexpr (kReads<decltype(inner)>) {
      inner.flag("blocking_launches", stack.parts.blocking_launches, kOptional);
    }
  });
  if constexpr (kReads<decltype(io)>) {
    io.flag("overlap_p2p", stack.parts.overlap_p2p, kOptional);
  }
  io.object(
      "parts", [&](auto& inner) { kPartFields(inner, stack); }, kOptional);
  io.object("memory", [&](auto& inner) { kMemoryFields(inner, stack.memory); });
  io.object(
      "choices", [&](auto& inner) { kChoiceFields(inner, stack.choices); }, kOptional);
  io.flag("zero_2_and_3_with_pipeline", stack.zero_2_and_3_with_pipeline);
  io.flag("deepspeed_engine", stack.deepspeed_engine, kOptional);
  io.number("tensor_overlap", stack.tp_overlap, {0, 1}, kOptional);
  io.number("eager_traffic", stack.eager_traffic, {1, 10}, kOptional);
  io.number("flash_speed", stack.flash_speed, {0.01, 10}, kOptional);
  io.flag("scales_loss", stack.scales_loss, kOptional);
  io.flag("fp8_products", stack.fp8_products, kOptional);
  io.flag("rounds_anew", stack.requantizes_in_backward, kOptional);
  io.flag("rounds_in_products", stack.quantizes_inside_gemm, kOptional);
  io.flag("compiles_loss", stack.compiles_loss, kOptional);
  io.flag("checkpoint_stops_early", stack.checkpoint_stops_early, kOptional);
  io.flag("copies_gathered_weights", stack.copies_gathered_weights, kOptional);
  io.number("overlap_slowdown", stack.overlap_slowdown, {1, 10});
  io.number("rank_jitter", stack.rank_jitter, {0, 1});
  io.number("run_spread", stack.run_spread, {0, 1});
  io.number("residual_spread", stack.residual_spread, {0, 1});
  io.text("spread_gpus", stack.spread_gpus, kOptional);
  io.number("unmodelled", stack.uncalibrated_overhead, {0, 1}, kOptional);
  calibration_field(io, stack.calibrated);
};

}  // namespace

Result<StackSpec> read_stack(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  return parse_stack(text, path.string());
}

Result<StackSpec> parse_stack(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return spec_from_json<StackSpec>(root, file, kStackFields);
}

std::string to_json(const StackSpec& stack) { return to_text(json_from_spec(stack, kStackFields)); }

const std::string& refusal_reason(Setting setting) {
  static const std::vector<std::string> reasons = [] {
    std::vector<std::string> all;
    for (const SettingRow& row : setting_rows()) {
      all.push_back("the stack does not support this " + std::string(row.title));
    }
    return all;
  }();
  return reasons[static_cast<std::size_t>(setting)];
}

std::string refusal_reason(const StackChoices& choices, const Plan& plan) {
  for (const SettingRow& row : setting_rows()) {
    if (row.kind == SettingKind::kList) continue;
    if (!choices.has(setting_of(plan, row.setting))) return refusal_reason(row.setting);
  }
  return "";
}

StackLimit violated_limit(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  for (const RuleScope scope : {RuleScope::kModel, RuleScope::kPlan, RuleScope::kStages}) {
    if (const LaunchRule* rule = broken_rule(stack.launcher, scope, model, plan)) {
      return {fmt::format("cannot run {}", rule->what), rule->why};
    }
  }
  if (const PartRule* rule = broken_part_rule(stack, model, plan)) {
    return {fmt::format("cannot run {}", rule->what), rule->why};
  }
  if (plan.zero >= 2 && plan.degrees.pp > 1 && !stack.zero_2_and_3_with_pipeline) {
    return {fmt::format("cannot run ZeRO {} with a pipeline", plan.zero),
            "use ZeRO 0 or 1, or pp = 1"};
  }
  std::string reason = refusal_reason(stack.choices, plan);
  return {reason, reason.empty() ? "" : stack.choices.source};
}

StackSpec without_limits(StackSpec stack) {
  stack.launcher = Launcher::kNone;
  stack.choices.only = {};
  for (const SettingWord& word : row_of(Setting::kSchedule).words) {
    stack.choices.only[Setting::kSchedule].push_back(word.value);  // zb-h1 must be listed
  }
  stack.zero_2_and_3_with_pipeline = true;
  return stack;
}

std::string_view name_of(GradientReduction reduction) {
  return reduction == GradientReduction::kAllReduce ? "all_reduce" : "reduce_scatter";
}

JsonValue stack_schema() { return schema_from_fields<StackSpec>(kStackFields); }

}  // namespace tpsim
