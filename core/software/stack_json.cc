#include "core/software/stack_json.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/json/key_meanings.h"
#include "core/software/field_json.h"
#include "core/software/part_rules.h"

namespace tpsim {
namespace {

template <class Io>
constexpr bool kReads = std::is_same_v<std::remove_reference_t<Io>, FieldReader>;

// Reads software parts from "training", where old stack files have them instead of in "parts".
void old_training_fields(FieldReader& in, StackSpec& stack) {
  TrainingOptions& training = stack.training;
  in.choice("gradient_reduction", training.gradient_reduction,
            {GradientReduction::kAllReduce, GradientReduction::kReduceScatter}, kOptional);
  stack.parts.data_parallel_sync = training.gradient_reduction == GradientReduction::kAllReduce
                                       ? DataParallelSync::kAllReduce
                                       : DataParallelSync::kReduceScatter;
  bool fused = fuses_accumulation(training);
  in.flag("fused_gradient_accumulation", fused, kOptional);
  training.gradient_accumulation =
      fused ? GradientAccumulation::kFused : GradientAccumulation::kSeparate;
  in.flag("overlap_gradient_reduction", training.overlap_gradient_reduction, kOptional);
  in.flag("overlap_parameter_gather", training.overlap_parameter_gather, kOptional);
  bool copies = copies_logits(training);
  in.flag("wide_logits", copies, kOptional);
  training.logits_dtype = copies ? LogitsDtype::kFloat32 : LogitsDtype::kPlan;
  bool scatters = training.pipeline_sends == PipelineSends::kScattered;
  in.flag("scatter_gather_transfers", scatters, kOptional);
  training.pipeline_sends = scatters ? PipelineSends::kScattered : PipelineSends::kWhole;
}

constexpr auto kTrainingFields = [](auto& io, auto& stack) {
  io.flag(key_at("stack/widened_optimizer_gradients"), stack.training.widened_optimizer_gradients,
          kOptional);
  io.flag(key_at("stack/clip_gradients"), stack.training.clip_gradients);
  if constexpr (kReads<decltype(io)>) old_training_fields(io, stack);
};

constexpr auto kPartFields = [](auto& io, auto& stack) {
  for (const PartRow& row : part_rows()) {
    std::int64_t value = row.get(stack);
    value_field(io, row, value, kOptional);
    if constexpr (kReads<decltype(io)>) row.set(stack, value);
  }
};

constexpr auto kHostFields = [](auto& io, auto& host) {
  io.quantity(key_at("stack/per_op"), host.per_op);
  io.when(host.forward_op > Seconds(), [&](auto& inner) {
    inner.quantity(key_at("stack/forward_op"), host.forward_op, kOptional);
    inner.quantity(key_at("stack/backward_op"), host.backward_op, kOptional);
    inner.quantity(key_at("stack/module_call"), host.module_call, kOptional);
  });
  io.when(host.per_block_op > Seconds(), [&](auto& inner) {
    inner.quantity(key_at("stack/per_block_op"), host.per_block_op, kOptional);
  });
  io.quantity(key_at("stack/per_collective"), host.per_collective);
  io.quantity(key_at("stack/per_block_forward"), host.per_block_forward);
  io.quantity(key_at("stack/per_block_backward"), host.per_block_backward);
  io.quantity(key_at("stack/per_routing_forward"), host.per_routing_forward, kOptional);
  io.quantity(key_at("stack/per_routing_backward"), host.per_routing_backward, kOptional);
  io.quantity(key_at("stack/per_expert_forward"), host.per_expert_forward, kOptional);
  io.quantity(key_at("stack/per_expert_backward"), host.per_expert_backward, kOptional);
  io.quantity(key_at("stack/per_gather"), host.per_gather, kOptional);
  io.quantity(key_at("stack/per_transfer"), host.per_transfer, kOptional);
  io.quantity(key_at("stack/per_micro_batch"), host.per_micro_batch);
  io.quantity(key_at("stack/per_step"), host.per_step);
  io.quantity(key_at("stack/blocking_op"), host.blocking_op, kOptional);
  io.quantity(key_at("stack/blocking_collective"), host.blocking_collective, kOptional);
};

constexpr auto kMemoryFields = [](auto& io, auto& memory) {
  io.quantity(key_at("stack/context"), memory.context);
  io.quantity(key_at("stack/library_workspace"), memory.library_workspace);
  io.quantity(key_at("stack/collective_buffers"), memory.collective_buffers);
  io.quantity(key_at("stack/allocation_granularity"), memory.allocation_granularity);
  io.integer(key_at("stack/reduction_bucket"), memory.reduction_bucket, {0, 1'000'000'000'000},
             kOptional);
  io.flag(key_at("stack/gradient_stand_ins"), memory.gradient_stand_ins, kOptional);
  io.flag(key_at("stack/layer_in_reduction"), memory.layer_in_reduction, kOptional);
  io.flag(key_at("stack/caching_allocator"), memory.caching_allocator, kOptional);
  io.number(key_at("stack/fragmentation"), memory.fragmentation, {0, 1});
  io.number(key_at("stack/spread"), memory.spread, {0.0001, 1}, kOptional);
  io.require(memory.allocation_granularity.value() >= 1, "allocation_granularity",
             "it must be at least one byte");
};

constexpr auto kChoiceFields = [](auto& io, auto& choices) {
  io.text(key_at("stack/source"), choices.source);
  setting_list_fields(io, choices.only);
  auto parts = choices.parts;  // `choices` is const for a writer
  for (const PartRow& row : part_rows()) values_field(io, row, parts[row.part]);
  std::erase_if(parts, [](const auto& one) { return one.second.empty(); });
  if constexpr (kReads<decltype(io)>) {
    choices.parts = std::move(parts);
    // Old stack files use this key.
    io.word_list("rank_orders", choices.only[Setting::kRankOrder],
                 row_of(Setting::kRankOrder).words, kOptional);
  }
};

constexpr auto kStackFields = [](auto& io, auto& stack) {
  io.format("tpsim-stack/1");
  io.renamed("known_as", "aliases");
  io.renamed("rounds_anew", "requantizes_in_backward");
  io.renamed("rounds_in_products", "quantizes_inside_gemm");
  io.renamed("unmodelled", "uncalibrated_overhead");
  io.renamed("zero", "default_zero");
  io.renamed("other_gpus_slower", "other_runs");
  io.text(key_at("stack/name"), stack.name);
  io.text(key_at("stack/stack.source"), stack.source);
  io.text(key_at("stack/aliases"), stack.aliases, kOptional);
  io.choice(key_at("stack/launcher"), stack.launcher, every<Launcher>(), kOptional);
  io.integer(key_at("stack/default_zero"), stack.default_zero, {-1, 3}, kOptional);
  io.flag(key_at("stack/sequence_parallel"), stack.sequence_parallel, kOptional);
  io.choice(key_at("stack/gradient_dtype"), stack.gradient_dtype,
            {DType::kFloat32, DType::kBFloat16}, kOptional);
  io.flag(key_at("stack/fp8_param_gather"), stack.fp8_param_gather, kOptional);
  io.object(key_at("stack/training"), [&](auto& inner) { kTrainingFields(inner, stack); });
  io.object(key_at("stack/host"), [&](auto& inner) {
    kHostFields(inner, stack.host);
    if constexpr (kReads<decltype(inner)>) {
      inner.flag("blocking_launches", stack.parts.blocking_launches, kOptional);
    }
  });
  if constexpr (kReads<decltype(io)>) {
    io.flag("overlap_p2p", stack.parts.overlap_p2p, kOptional);
  }
  io.object(
      key_at("stack/parts"), [&](auto& inner) { kPartFields(inner, stack); }, kOptional);
  io.object(key_at("stack/memory"), [&](auto& inner) { kMemoryFields(inner, stack.memory); });
  io.object(
      key_at("stack/choices"), [&](auto& inner) { kChoiceFields(inner, stack.choices); },
      kOptional);
  io.flag(key_at("stack/zero_2_and_3_with_pipeline"), stack.zero_2_and_3_with_pipeline);
  io.flag(key_at("stack/deepspeed_engine"), stack.deepspeed_engine, kOptional);
  io.number(key_at("stack/tensor_overlap"), stack.tp_overlap, {0, 1}, kOptional);
  io.number(key_at("stack/eager_traffic"), stack.eager_traffic, {1, 10}, kOptional);
  io.number(key_at("stack/flash_speed"), stack.flash_speed, {0.01, 10}, kOptional);
  io.flag(key_at("stack/scales_loss"), stack.scales_loss, kOptional);
  io.flag(key_at("stack/fp8_products"), stack.fp8_products, kOptional);
  io.flag(key_at("stack/requantizes_in_backward"), stack.requantizes_in_backward, kOptional);
  io.flag(key_at("stack/quantizes_inside_gemm"), stack.quantizes_inside_gemm, kOptional);
  io.flag(key_at("stack/compiles_loss"), stack.compiles_loss, kOptional);
  io.flag(key_at("stack/checkpoint_stops_early"), stack.checkpoint_stops_early, kOptional);
  io.flag(key_at("stack/copies_gathered_weights"), stack.copies_gathered_weights, kOptional);
  io.choice(key_at("stack/gathered_units"), stack.gathered_units,
            {GatheredUnits::kInUse, GatheredUnits::kHead, GatheredUnits::kRoot}, kOptional);
  io.flag(key_at("stack/copies_column_inputs"), stack.copies_column_inputs, kOptional);
  io.number(key_at("stack/overlap_slowdown"), stack.overlap_slowdown, {1, 10});
  io.number(key_at("stack/rank_jitter"), stack.rank_jitter, {0, 1});
  io.number(key_at("stack/run_spread"), stack.run_spread, {0, 1});
  io.number(key_at("stack/residual_spread"), stack.residual_spread, {0, 1}, kOptional);
  io.text(key_at("stack/spread_programs"), stack.spread_programs, kOptional);
  io.text(key_at("stack/spread_gpus"), stack.spread_gpus, kOptional);
  io.number(key_at("stack/other_runs"), stack.other_runs, {0, 2}, kOptional);
  if constexpr (kReads<decltype(io)>) {
    double former = 0;  // files of older versions have a spread for each end
    io.number("other_gpus_faster", former, {0, 1}, kOptional);
  }
  io.number(key_at("stack/uncalibrated_overhead"), stack.uncalibrated_overhead, {0, 1}, kOptional);
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

namespace {

// Returns the first setting whose value the stack's file does not list.
StackLimit unlisted_value(const StackChoices& choices, const Plan& plan) {
  for (const SettingRow& row : setting_rows()) {
    if (row.is_list()) continue;
    const SettingValue value = setting_of(plan, row.setting);
    if (choices.has(value)) continue;
    return {fmt::format("does not support {} {}", option_of(row.setting), text_of(value)),
            fmt::format("it supports {}",
                        joined_text(choices.only[row.setting], ", ", [&](std::int64_t one) {
                          return text_of(SettingValue{row.setting, one});
                        }))};
  }
  return {};
}

}  // namespace

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
  return unlisted_value(stack.choices, plan);
}

StackSpec without_limits(StackSpec stack) {
  stack.launcher = Launcher::kNone;
  stack.choices.only = {};
  for (const FieldWord& word : row_of(Setting::kSchedule).words) {
    stack.choices.only[Setting::kSchedule].push_back(word.value);  // zb-h1 must be listed
  }
  stack.zero_2_and_3_with_pipeline = true;
  return stack;
}

std::string_view name_of(GradientReduction reduction) {
  return reduction == GradientReduction::kAllReduce ? "all_reduce" : "reduce_scatter";
}

std::optional<FoundNumber> number_at(StackSpec& stack, std::string_view path) {
  return number_at(stack, path, kStackFields);
}

JsonValue stack_schema() { return schema_from_fields<StackSpec>(kStackFields); }

}  // namespace tpsim
