// Reads the plan of a command that needs a single plan. Options override a plan file, which
// overrides the defaults.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/base/checked_product.h"
#include "kernels/cpu/narrow_floats.h"
#include "plans/search/usual_batch.h"

namespace tpsim::cli {
namespace {

Status set_from_option(const Arguments& arguments, const SettingRow& row, Plan& plan) {
  const Opt opt = opt_of(row.setting);
  if (row.kind == SettingKind::kList || !arguments.has(opt)) return Ok{};
  TPSIM_TRY(const SettingChoices choices, setting_choices(arguments, row.setting));
  TPSIM_TRY_STATUS(
      check_single(arguments, opt, std::max(choices.values.size(), choices.counts.size())));
  const SettingValue value{row.setting, choices.values.front()};
  set(plan, value);
  const SettingRow* count = count_setting_of(value);
  if (count == nullptr) return Ok{};
  if (choices.counts.empty()) {
    return option_error(opt, fmt::format("'{}' needs a number of layers", text_of(value)),
                        fmt::format("write {}:3", text_of(value)));
  }
  set(plan, {count->setting, choices.counts.front()});
  return Ok{};
}

// Returns the interleaved schedule if the plan has virtual stages, and otherwise a schedule that is
// not interleaved.
ScheduleKind implied_schedule(const Plan& plan) {
  if (plan.virtual_stages > 1) return ScheduleKind::kInterleaved;
  return plan.schedule == ScheduleKind::kInterleaved ? ScheduleKind::kOneFOneB : plan.schedule;
}

bool asks_for_cut(const Arguments& arguments) {
  return arguments.has(Opt::kCountEmbedding) || arguments.has(Opt::kNoCountEmbedding);
}

Status check_cut_options(const Arguments& arguments) {
  if (arguments.has(Opt::kCountEmbedding) && arguments.has(Opt::kNoCountEmbedding)) {
    return option_error(Opt::kCountEmbedding, "contradicts --no-count-embedding",
                        "give only one of them");
  }
  if (arguments.has(opt_of(Setting::kStageLayers)) && asks_for_cut(arguments)) {
    return option_error(opt_of(Setting::kStageLayers),
                        "fixes the stages, so that --count-embedding has no effect",
                        "give only one of them");
  }
  return Ok{};
}

std::int64_t blocks_of(const Plan& plan) {
  return std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), std::int64_t{0});
}

// Returns the maximum number of chunks. Embedding and head may be chunks without layers.
std::int64_t most_chunks(const ModelSpec& model) { return model.layers + 2; }

// Returns the nearest degree of pipeline or virtual stages with at most `most` chunks.
std::string fewer_chunks(const Plan& plan, std::int64_t most) {
  if (plan.degrees.pp <= most) {
    return fmt::format("the nearest virtual_stages is {}", most / plan.degrees.pp);
  }
  // A single stage does not have virtual stages.
  const bool keeps_chunks = most / plan.virtual_stages >= 2;
  return keeps_chunks ? fmt::format("the nearest pp is {}", most / plan.virtual_stages)
                      : fmt::format("the nearest pp is {} with virtual_stages 1", most);
}

Status set_stages(const Arguments& arguments, const ModelSpec& model, Plan& plan) {
  TPSIM_TRY_STATUS(check_cut_options(arguments));
  const std::int64_t chunks = chunk_count(plan);
  if (arguments.has(opt_of(Setting::kStageLayers))) {
    TPSIM_TRY(plan.stage_layers,
              integers_of(arguments, opt_of(Setting::kStageLayers), {0, 1 << 20}));
    return Ok{};
  }
  if (chunks > most_chunks(model)) {
    return bad_input(
        fmt::format("pp x virtual_stages = {} chunks are too many for the {} layers of {}", chunks,
                    model.layers, model.name),
        "--pp", fewer_chunks(plan, most_chunks(model)));
  }
  if (asks_for_cut(arguments)) {
    const bool counts = arguments.has(Opt::kCountEmbedding);
    if (counts && chunks == 1) {
      return option_error(Opt::kCountEmbedding, "has no effect with one stage",
                          "add --pp 2 or more");
    }
    plan.stage_layers = even_stage_layers(model.layers, chunks, counts);
    if (plan.stage_layers.empty()) {
      return option_error(
          Opt::kCountEmbedding,
          fmt::format("gives the first or last of the {} stages a negative number of layers",
                      chunks));
    }
  } else if (static_cast<std::int64_t>(plan.stage_layers.size()) != chunks ||
             blocks_of(plan) != model.layers) {
    plan.stage_layers = default_stage_layers(model.layers, chunks);
  }
  return Ok{};
}

// Whether the stack does not offer `kind`, or a rule of its launcher refuses `kind` but not `other`
// for this model.
bool refuses(const Scenario& scenario, AttentionKind kind, AttentionKind other) {
  Plan asked, instead;
  asked.attention = kind;
  instead.attention = other;
  const StackSpec& stack = scenario.stack;
  if (!stack.choices.has(setting_of(asked, Setting::kAttention))) return true;
  const std::vector<const LaunchRule*> rules = rules_of(stack.launcher, RuleScope::kPlan);
  return std::any_of(rules.begin(), rules.end(), [&](const LaunchRule* rule) {
    return rule->is_broken(scenario.model, asked) && !rule->is_broken(scenario.model, instead);
  });
}

}  // namespace

PlanDefaults plan_defaults(const Scenario& scenario) {
  PlanDefaults defaults;
  defaults.dtype = usual_dtype(scenario.profile.device);
  defaults.narrow_gradients = has_narrow_gradients(scenario.stack.parts);
  const StackSpec& stack = scenario.stack;
  if (stack.default_zero >= 0) defaults.zero = stack.default_zero;
  // FSDP's pipeline stages keep gathered weights (torchtitan's reshard_after_forward: default).
  defaults.zero_in_pipeline = std::min(defaults.zero, stack.zero_2_and_3_with_pipeline ? 2 : 1);
  const bool drops =
      scenario.model.attention_dropout > 0;  // tpsim's flash attention does not support dropout
  if (!drops && !refuses(scenario, AttentionKind::kFlash, AttentionKind::kUnfused)) {
    defaults.attention = AttentionKind::kFlash;
  }
  return defaults;
}

Result<Plan> single_plan(const Arguments& arguments, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults) {
  Plan plan;
  plan.recompute = Recompute::kNone;
  plan.attention = defaults.attention;
  plan.dtype = defaults.dtype;
  plan.global_batch = 0;
  if (file) plan = file->plan;
  for (const SettingRow& row : setting_rows()) {
    TPSIM_TRY_STATUS(set_from_option(arguments, row, plan));
  }
  if (!file && !arguments.has(opt_of(Setting::kZero))) {
    plan.zero = plan.degrees.pp > 1 ? defaults.zero_in_pipeline : defaults.zero;
  }
  if (!file && defaults.narrow_gradients && !arguments.has(opt_of(Setting::kGradientDtype))) {
    plan.gradient_dtype = plan.dtype;
  }
  if (plan.global_batch == 0) {
    const ParallelDegrees& d = plan.degrees;
    const std::int64_t at_once = d.dp * plan.micro_batch;
    const std::int64_t gpus = checked_product({d.tp, d.pp, d.dp, d.cp}).value_or(1);
    plan.global_batch = defaults.usual_batch ? usual_global_batch(model, gpus, at_once) : at_once;
  }
  if (!arguments.has(opt_of(Setting::kSchedule))) plan.schedule = implied_schedule(plan);
  TPSIM_TRY_STATUS(set_stages(arguments, model, plan));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

Status check_runs_on(const Plan& plan, std::string_view device) {
  if (plan.recompute == Recompute::kOps) {
    return option_error(opt_of(Setting::kRecompute),
                        "tpsim can predict recompute of single ops, but cannot execute it",
                        "use --recompute full");
  }
  const bool is_run = is_emulated(plan.precision);
  if (!is_run || plan.fp8_param_gather) {
    const Setting setting = is_run ? Setting::kFp8ParamGather : Setting::kPrecision;
    const std::string text = to_string(setting_of(plan, setting));
    return option_error(opt_of(setting), text + " can be predicted, but tpsim cannot execute it",
                        "tpsim executes fp8, fp8-current, fp8-block and mxfp8");
  }
  if (plan.offload == Offload::kNone || device != "cuda") return Ok{};
  return option_error(opt_of(Setting::kOffload),
                      "an offloaded optimizer runs on the CPU device only",
                      "use --device cpu, or --offload none");
}

}  // namespace tpsim::cli
