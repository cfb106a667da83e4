// The plan or the search space of a request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "plans/search/search.h"

namespace tpsim::app {

// Called with the completed share in [0, 1]; may be empty.
using Progress = std::function<void(double)>;

// Stated values of plan settings. A search tries all of a setting's values; a single plan has at
// most one value of each setting, and any number of stage layers.
struct StatedSettings {
  SettingLists values = {};
  std::optional<bool> count_embedding = {};  // balance stages with or without embedding and head

  bool has(Setting setting) const { return !values[setting].empty(); }
};

// Defaults of plan settings that neither the request nor a plan file states.
struct PlanDefaults {
  AttentionKind attention = AttentionKind::kUnfused;
  DType dtype = DType::kBFloat16;
  bool narrow_gradients = false;       // gradients in the dtype of the weights
  int zero = 1, zero_in_pipeline = 1;  // the stack's stage, and with several pipeline stages
  // true: the default batch is about the model's usual batch, or 4 M tokens, rounded to a multiple
  // of (dp x micro-batch). false: one micro-batch per data-parallel rank.
  bool usual_batch = true;
};
// Returns flash attention if model and software support it, and the usual training dtype of the
// GPU.
PlanDefaults plan_defaults(const Scenario& scenario);

// Returns the plan of `simulate`: that of the plan file, or tp = pp = dp = 1 with the defaults and
// without recompute. Stated settings override it. Layers are divided among the stages again if the
// request states how, or if the division does not match the model. The result satisfies validate().
Result<Plan> single_plan(const StatedSettings& stated, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults);

struct SearchRequest {
  std::int64_t gpus = 0;  // 0: not stated
  StatedSettings settings = {};
  std::vector<SettingValue> excluded = {};
  std::optional<std::int64_t> uneven_ends = {};
  Objective objective = Objective::kTime;
  Bytes memory_limit = {};              // zero: the memory of the GPU
  std::optional<double> oom_risk = {};  // accepted probability of running out of memory
  Seconds within = {};                  // time for the search; zero: until it is complete
  int threads = 1;
  Progress progress = {};
};

// Load the scenario of a search, or of a plan. Its number of GPUs decides the assumed stack
// (ScenarioRequest::gpus).
Result<NamedScenario> load_scenario(ScenarioRequest request, const SearchRequest& search);
Result<NamedScenario> load_scenario(ScenarioRequest request, const StatedSettings& settings);

// Returns the search space. Settings that are not stated are searched. A plan file fixes all
// settings as space_around() does, except stated ones.
Result<SearchSpace> search_space(const SearchRequest& request, const Scenario& scenario,
                                 const std::optional<PlanFile>& file);

// Return the settings that are left at their defaults; none with a plan file. A search tries all
// values of other settings than the global batch.
std::set<Setting> settings_left(const StatedSettings& stated, bool has_file);
std::set<Setting> settings_left(const SearchRequest& request, bool has_file);

}  // namespace tpsim::app
