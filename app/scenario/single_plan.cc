// Makes the plan of a request that needs a single plan. Stated settings override a plan file, which
// overrides the defaults.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/scenario/field.h"
#include "app/scenario/plan_request.h"
#include "core/base/checked_product.h"
#include "plans/search/usual_batch.h"

namespace tpsim::app {
namespace {

Status set_stated(const StatedSettings& stated, const SettingRow& row, Plan& plan) {
  if (row.is_list() || row.counts_for != nullptr || !stated.has(row.setting)) return Ok{};
  const SettingValue value{row.setting, stated.values[row.setting].front()};
  set(plan, value);
  const SettingRow* count = count_setting_of(value);
  if (count == nullptr) return Ok{};
  if (!stated.has(count->setting)) {
    return field_error(row.setting, fmt::format("'{}' needs a number of layers", text_of(value)),
                       fmt::format("write {}:3", text_of(value)));
  }
  set(plan, {count->setting, stated.values[count->setting].front()});
  return Ok{};
}

// Returns the interleaved schedule if the plan has virtual stages, and otherwise a schedule that is
// not interleaved.
ScheduleKind implied_schedule(const Plan& plan) {
  if (plan.virtual_stages > 1) return ScheduleKind::kInterleaved;
  return plan.schedule == ScheduleKind::kInterleaved ? ScheduleKind::kOneFOneB : plan.schedule;
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

Status set_stages(const StatedSettings& stated, const ModelSpec& model, Plan& plan) {
  const std::int64_t chunks = chunk_count(plan);
  if (stated.has(Setting::kStageLayers)) {
    if (stated.count_embedding) {
      return field_error(Setting::kStageLayers,
                         "fixes the stages, so that --count-embedding has no effect",
                         "give only one of them");
    }
    plan.stage_layers = stated.values[Setting::kStageLayers];
    return Ok{};
  }
  if (chunks > most_chunks(model)) {
    return bad_input(
        fmt::format("pp x virtual_stages = {} chunks are too many for the {} layers of {}", chunks,
                    model.layers, model.name),
        "--pp", fewer_chunks(plan, most_chunks(model)));
  }
  if (stated.count_embedding) {
    const bool counts = *stated.count_embedding;
    if (counts && chunks == 1) {
      return field_error(Field::kCountEmbedding, "has no effect with one stage",
                         "add --pp 2 or more");
    }
    plan.stage_layers = even_stage_layers(model.layers, chunks, counts);
    if (plan.stage_layers.empty()) {
      return field_error(
          Field::kCountEmbedding,
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

Result<NamedScenario> load_scenario(ScenarioRequest request, const SearchRequest& search) {
  request.gpus = search.gpus;
  return load_scenario(request);
}

Result<NamedScenario> load_scenario(ScenarioRequest request, const StatedSettings& settings) {
  request.gpus = 1;
  for (const Setting degree : {Setting::kTp, Setting::kPp, Setting::kDp, Setting::kCp}) {
    if (settings.has(degree)) request.gpus *= settings.values[degree].front();
  }
  return load_scenario(request);
}

Result<Plan> single_plan(const StatedSettings& stated, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults) {
  Plan plan;
  plan.recompute = Recompute::kNone;
  plan.attention = defaults.attention;
  plan.dtype = defaults.dtype;
  plan.global_batch = 0;
  if (file) plan = file->plan;
  for (const SettingRow& row : setting_rows()) {
    TPSIM_TRY_STATUS(set_stated(stated, row, plan));
  }
  if (!file && !stated.has(Setting::kZero)) {
    plan.zero = plan.degrees.pp > 1 ? defaults.zero_in_pipeline : defaults.zero;
  }
  if (!file && defaults.narrow_gradients && !stated.has(Setting::kGradientDtype)) {
    plan.gradient_dtype = plan.dtype;
  }
  if (plan.global_batch == 0) {
    const ParallelDegrees& d = plan.degrees;
    const std::int64_t at_once = d.dp * plan.micro_batch;
    const std::int64_t gpus = checked_product({d.tp, d.pp, d.dp, d.cp}).value_or(1);
    plan.global_batch = defaults.usual_batch ? usual_global_batch(model, gpus, at_once) : at_once;
  }
  if (!stated.has(Setting::kSchedule)) plan.schedule = implied_schedule(plan);
  TPSIM_TRY_STATUS(set_stages(stated, model, plan));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

std::set<Setting> settings_left(const StatedSettings& stated, bool has_file) {
  std::set<Setting> left;
  if (has_file) return left;
  for (const SettingRow& row : setting_rows()) {
    if (!row.is_list() && !stated.has(row.setting)) left.insert(row.setting);
  }
  return left;
}

std::set<Setting> settings_left(const SearchRequest& request, bool has_file) {
  if (has_file || request.settings.has(Setting::kGlobalBatch)) return {};
  return {Setting::kGlobalBatch};
}

}  // namespace tpsim::app
