#include "core/software/stack_json.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
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
  io.flag(
      {"widened_optimizer_gradients",
       "the optimizer copies its shard of 16-bit gradients to fp32 at the end of the step [false]"},
      stack.training.widened_optimizer_gradients, kOptional);
  io.flag({"clip_gradients", "gradients are clipped by their global norm before the update"},
          stack.training.clip_gradients);
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
  io.quantity({"per_op", "time per kernel launch"}, host.per_op);
  io.when(host.forward_op > Seconds(), [&](auto& inner) {
    inner.quantity({"forward_op", "of captured programs: host time per op in forward"},
                   host.forward_op, kOptional);
    inner.quantity({"backward_op", "of captured programs: host time per op in backward"},
                   host.backward_op, kOptional);
    inner.quantity({"module_call", "of captured programs: host time per call of a module"},
                   host.module_call, kOptional);
  });
  io.when(host.per_block_op > Seconds(), [&](auto& inner) {
    inner.quantity(
        {"per_block_op", "additional time per kernel of a block: Python, dispatcher, autograd"},
        host.per_block_op, kOptional);
  });
  io.quantity({"per_collective", "time per collective or send"}, host.per_collective);
  io.quantity({"per_block_forward",
               "time per block and micro-batch in forward, in addition to its kernel launches"},
              host.per_block_forward);
  io.quantity({"per_block_backward",
               "time per block and micro-batch in backward, in addition to its kernel launches"},
              host.per_block_backward);
  io.quantity({"per_routing_forward", "additional forward time per MoE layer [0 s]"},
              host.per_routing_forward, kOptional);
  io.quantity({"per_routing_backward", "additional backward time per MoE layer [0 s]"},
              host.per_routing_backward, kOptional);
  io.quantity(
      {"per_expert_forward",
       "additional forward time per local expert if its tokens are quantized to 8 or 4 bits [0 s]"},
      host.per_expert_forward, kOptional);
  io.quantity({"per_expert_backward",
               "additional backward time per local expert if its tokens are quantized [0 s]"},
              host.per_expert_backward, kOptional);
  io.quantity({"per_gather",
               "ZeRO 3: time per block and pass of the hooks that gather and free weights [0 s]"},
              host.per_gather, kOptional);
  io.quantity(
      {"per_transfer", "time per send between pipeline stages, without the transfer itself [0 s]"},
      host.per_transfer, kOptional);
  io.quantity({"per_micro_batch", "time per micro-batch: schedule and data loading"},
              host.per_micro_batch);
  io.quantity({"per_step", "time per step: logging, timers, learning-rate schedule"},
              host.per_step);
  io.quantity({"blocking_op", "additional time per kernel with blocking launches [0 s]"},
              host.blocking_op, kOptional);
  io.quantity(
      {"blocking_collective", "additional time per collective with blocking launches [0 s]"},
      host.blocking_collective, kOptional);
};

constexpr auto kMemoryFields = [](auto& io, auto& memory) {
  io.quantity({"context", "CUDA context and loaded kernels"}, memory.context);
  io.quantity({"library_workspace", "workspaces of cuBLAS and similar libraries"},
              memory.library_workspace);
  io.quantity({"collective_buffers", "buffers per communicator of a rank"},
              memory.collective_buffers);
  io.quantity({"allocation_granularity", "allocation sizes are rounded up to a multiple of this"},
              memory.allocation_granularity);
  io.integer(
      {"reduction_bucket",
       "elements of the bucket into which gradients are copied before reduction; 0: no bucket [0]"},
      memory.reduction_bucket, {0, 1'000'000'000'000}, kOptional);
  io.flag({"gradient_stand_ins",
           "with fused wgrad accumulation, one placeholder gradient per distinct weight shape "
           "stays allocated [false]"},
          memory.gradient_stand_ins, kOptional);
  io.flag({"layer_in_reduction",
           "ZeRO 2 and 3 with overlapped reduction: the unsharded gradients of a layer stay in "
           "memory until those of the next layer exist [false]"},
          memory.layer_in_reduction, kOptional);
  io.flag({"caching_allocator",
           "freed memory of one category (activations, gradients, workspace, ...) does not fit "
           "tensors of another, so that the peaks of the categories add up; expandable segments "
           "avoid this [false]"},
          memory.caching_allocator, kOptional);
  io.number({"fragmentation", "reserved but unused memory relative to activations and workspace"},
            memory.fragmentation, {0, 1});
  io.number({"spread",
             "relative standard deviation of the predicted memory [that of software without "
             "calibration rows]"},
            memory.spread, {0.0001, 1}, kOptional);
  io.require(memory.allocation_granularity.value() >= 1, "allocation_granularity",
             "it must be at least one byte");
};

constexpr auto kChoiceFields = [](auto& io, auto& choices) {
  io.text({"source", "source of these limits, which messages about refused plans print"},
          choices.source);
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
  io.text({"name", "name in reports"}, stack.name);
  io.text({"source", "source of the numbers"}, stack.source);
  io.text({"aliases",
           "names of the stack in tables of measured runs, separated by commas; \"NeMo until "
           "2025-01\" applies to runs up to that month, \"NeMo on H100\" to runs on that GPU, "
           "\"torchtitan of Llama-4\" to runs of models whose name contains it, "
           "\"torchtune with gradient_sync=every_micro_batch\" to a program that differs in "
           "parts, separated by /"},
          stack.aliases, kOptional);
  io.choice({"launcher", "launcher whose rules plans must satisfy; none: no rules [none]"},
            stack.launcher, every<Launcher>(), kOptional);
  io.integer({"default_zero",
              "ZeRO stage of measured runs that do not state one; -1: the stage in the description "
              "of their source [-1]"},
             stack.default_zero, {-1, 3}, kOptional);
  io.flag({"sequence_parallel",
           "sequence parallelism of measured runs with tp > 1 that do not state it [false]"},
          stack.sequence_parallel, kOptional);
  io.choice({"gradient_dtype",
             "dtype of gradient accumulation in measured bf16 runs that do not state one [fp32]"},
            stack.gradient_dtype, {DType::kFloat32, DType::kBFloat16}, kOptional);
  io.flag({"fp8_param_gather",
           "measured runs with fp8 or fp8-current store and gather weights in 8 bits [false]"},
          stack.fp8_param_gather, kOptional);
  io.object({"training", "training options that change the executed ops"},
            [&](auto& inner) { kTrainingFields(inner, stack); });
  io.object({"host", "host times to launch work"}, [&](auto& inner) {
    kHostFields(inner, stack.host);
    if constexpr (kReads<decltype(inner)>) {
      inner.flag("blocking_launches", stack.parts.blocking_launches, kOptional);
    }
  });
  if constexpr (kReads<decltype(io)>) {
    io.flag("overlap_p2p", stack.parts.overlap_p2p, kOptional);
  }
  io.object(
      {"parts", "software options of the stack"}, [&](auto& inner) { kPartFields(inner, stack); },
      kOptional);
  io.object({"memory", "GPU memory in addition to tensors"},
            [&](auto& inner) { kMemoryFields(inner, stack.memory); });
  io.object(
      {"choices",
       "values of settings that the launcher accepts, and values of software options that a search "
       "tries (attention_kernel: the kernels that runs have, which widen intervals); an omitted "
       "setting accepts any value"},
      [&](auto& inner) { kChoiceFields(inner, stack.choices); }, kOptional);
  io.flag({"zero_2_and_3_with_pipeline", "ZeRO 2 and 3 can be combined with pipeline parallelism"},
          stack.zero_2_and_3_with_pipeline);
  io.flag({"deepspeed_engine",
           "in measured runs DeepSpeed's engine selects data_parallel_sync: bf16_optimizer for "
           "bf16 with fp32 accumulation below ZeRO 2, slices for other ZeRO 1 runs, else "
           "all_reduce [false]"},
          stack.deepspeed_engine, kOptional);
  io.number({"tensor_overlap",
             "tp_overlap=userbuffers with sequence parallelism: share of the time of "
             "tensor-parallel collectives that overlaps with GEMMs [0]"},
            stack.tp_overlap, {0, 1}, kOptional);
  io.number({"eager_traffic",
             "time of the kernels other than GEMMs, relative to the modelled fused kernels [1]"},
            stack.eager_traffic, {1, 10}, kOptional);
  io.number(
      {"flash_speed", "speed of the flash attention kernel relative to that of the profile [1]"},
      stack.flash_speed, {0.01, 10}, kOptional);
  io.flag({"scales_loss",
           "fp16 gradients are unscaled and checked for infinities in a separate pass before the "
           "optimizer [true]"},
          stack.scales_loss, kOptional);
  io.flag({"fp8_products", "files of older versions: plans without precision use fp8 [false]"},
          stack.fp8_products, kOptional);
  io.flag({"requantizes_in_backward",
           "inputs of low-precision GEMMs are saved in 16 bits and quantized again in backward "
           "(torchao); false: quantized inputs are saved [false]"},
          stack.requantizes_in_backward, kOptional);
  io.flag({"quantizes_inside_gemm",
           "every low-precision GEMM quantizes its operands itself, and operands are gathered in "
           "16 bits [false]"},
          stack.quantizes_inside_gemm, kOptional);
  io.flag({"compiles_loss",
           "torch.compile covers the loss too, so that the logits have no fp32 copy [false]"},
          stack.compiles_loss, kOptional);
  io.flag({"checkpoint_stops_early",
           "full recompute does not repeat the last GEMM of a block, which backward does not need "
           "[false]"},
          stack.checkpoint_stops_early, kOptional);
  io.flag({"copies_gathered_weights",
           "ZeRO 3 copies gathered weights from the buffer of the all-gather into tensors [false]"},
          stack.copies_gathered_weights, kOptional);
  io.choice(
      {"gathered_units",
       "how long ZeRO 3 keeps gathered weights; head: FSDP with the next block gathered ahead and "
       "a unit of final norm and head; root: the same with the embedding in that unit [in_use]"},
      stack.gathered_units, {GatheredUnits::kInUse, GatheredUnits::kHead, GatheredUnits::kRoot},
      kOptional);
  io.flag({"copies_column_inputs",
           "tensor parallelism: every column-parallel layer (q, k, v, gate, up) copies its input "
           "and reduces its own input gradient [false]"},
          stack.copies_column_inputs, kOptional);
  io.number({"overlap_slowdown", "slowdown factor of compute that overlaps with a collective"},
            stack.overlap_slowdown, {1, 10});
  io.number({"rank_jitter", "relative standard deviation of compute time between ranks"},
            stack.rank_jitter, {0, 1});
  io.number({"run_spread", "relative standard deviation between runs of one plan"},
            stack.run_spread, {0, 1});
  io.number({"residual_spread",
             "relative standard deviation of the prediction error [that of software without "
             "calibration rows]"},
            stack.residual_spread, {0, 1}, kOptional);
  io.text({"spread_programs",
           "programs whose training step the stack describes, separated by commas; intervals are "
           "wider for measured runs of other programs, and for plans [all]"},
          stack.spread_programs, kOptional);
  io.text(
      {"spread_gpus",
       "GPUs on which the rows behind residual_spread ran: starts of names of profiles, separated "
       "by commas, or none; intervals on other GPUs are wider [all]"},
      stack.spread_gpus, kOptional);
  io.number(
      {"other_runs",
       "additional standard deviation of steps of programs outside spread_programs or on GPUs "
       "outside spread_gpus [that of software without calibration rows]"},
      stack.other_runs, {0, 2}, kOptional);
  if constexpr (kReads<decltype(io)>) {
    double former = 0;  // files of older versions have a spread for each end
    io.number("other_gpus_faster", former, {0, 1}, kOptional);
  }
  io.number({"uncalibrated_overhead",
             "expected time per step outside all modelled terms, relative to their sum, of "
             "software without calibration [0]"},
            stack.uncalibrated_overhead, {0, 1}, kOptional);
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
