// The cost of a plan depends only on the plan and the scenario: no cache returns the price of a
// plan that differs in a relevant setting.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "lowering/passes/expert_load.h"
#include "plans/search/search.h"
#include "sim/bounds/group_bounds.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/step/predict.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// A model whose size all small degrees divide, with an MTP layer.
ModelSpec divisible(ModelSpec model) {
  model.layers = 4;
  model.hidden = 96;
  model.ffn_hidden = 192;
  model.vocab = 500;
  model.seq = 48;
  model.attention.heads = model.attention.kv_heads = 12;
  model.attention.head_dim = 8;
  model.ends.prediction_layers = 1;
  return model;
}

// MoE blocks after a dense block.
ModelSpec mixture() {
  ModelSpec model = divisible(test::small_mixture());
  model.experts.dropless = true;
  BlockShape mixed = block_of_kind(model, 0), dense = mixed;
  dense.experts = {};
  set_blocks(model, {dense, mixed, mixed, mixed});
  return model;
}

// A device with all narrow dtypes, in nodes of which a job uses three GPUs or two.
Scenario scenario_of(const ModelSpec& model) {
  Scenario scenario = test::small_scenario(model);
  scenario.cluster.nodes = 256;
  scenario.cluster.gpus_per_node = 3;
  scenario.cluster.partly_used_gpus = 2;
  DeviceFacts& device = scenario.profile.device;
  device.fp8_peak = device.mxfp8_peak = FlopsPerSecond(200e12);
  device.nvfp4_peak = FlopsPerSecond(400e12);
  scenario.cluster.host.memory = Bytes(64 * kGiB);
  scenario.stack.parts.expert_load = kNaturalLoad;
  return scenario;
}

std::vector<Scenario> scenarios() {
  return {scenario_of(mixture()), scenario_of(divisible(test::small_gpt()))};
}

std::vector<std::int64_t> values_of(const SettingRow& row) {
  std::vector<std::int64_t> values;
  for (const FieldWord& word : row.words) values.push_back(word.value);
  if (!values.empty()) return values;
  for (const std::int64_t value : {0, 1, 2, 3, 4, 12, 24}) {
    if (value >= row.least && value <= row.most) values.push_back(value);
  }
  return values;
}

// Sets the value and dependent settings, since some settings must change together.
Plan changed(Plan plan, const SettingRow& row, std::int64_t value, const ModelSpec& model) {
  row.set(plan, value);
  if (row.setting == Setting::kRecompute) plan.recompute_blocks = 0;
  if (plan.recompute == Recompute::kBlocks || row.setting == Setting::kRecomputeBlocks) {
    plan.recompute = plan.recompute_blocks > 0 || row.setting == Setting::kRecompute
                         ? Recompute::kBlocks
                         : Recompute::kNone;
    if (plan.recompute == Recompute::kBlocks && plan.recompute_blocks == 0) {
      plan.recompute_blocks = 1;
    }
  }
  if (row.setting == Setting::kSchedule) {
    plan.virtual_stages = plan.schedule == ScheduleKind::kInterleaved ? 2 : 1;
  } else if (row.setting == Setting::kVirtualStages || row.setting == Setting::kPp) {
    if (plan.degrees.pp == 1) plan.virtual_stages = 1;
    plan.schedule = plan.virtual_stages > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
  }
  plan.stage_layers = even_stage_layers(model.layers, plan.degrees.pp * plan.virtual_stages, false);
  return plan;
}

using LegalPlans = std::vector<Plan>;

// A random plan and its variants in one setting; empty if no plan is legal. `seen`: collects the
// settings that were varied.
LegalPlans neighbours(const Scenario& scenario, std::mt19937& random, std::set<Setting>& seen) {
  const ModelSpec& model = scenario.model;
  constexpr int kMostTries = 2000;
  Plan base;
  int tries = 0;
  do {
    if (++tries > kMostTries) return {};
    base = {};
    base.global_batch = 24;
    base.attention = AttentionKind::kFlash;
    base.stage_layers = {model.layers};
    for (const SettingRow& row : setting_rows()) {
      if (row.is_list() || row.setting == Setting::kGlobalBatch) continue;
      const std::vector<std::int64_t> values = values_of(row);
      const Plan next = changed(base, row, values[random() % values.size()], model);
      // Degrees come first and are changed together.
      if (row.setting <= Setting::kEtp || check_plan(scenario, next).ok()) base = next;
    }
  } while (!check_plan(scenario, base).ok());
  LegalPlans plans = {base};
  const auto add = [&](const Plan& plan, Setting setting) {
    if (plan == base || !check_plan(scenario, plan).ok()) return;
    plans.push_back(plan);
    seen.insert(setting);
  };
  for (const SettingRow& row : setting_rows()) {
    if (row.is_list()) continue;
    for (const std::int64_t value : values_of(row)) {
      add(changed(base, row, value, model), row.setting);
    }
  }
  if (base.stage_layers.size() == 2) {
    Plan uneven = base;
    uneven.stage_layers = {1, model.layers - 1};
    add(uneven, Setting::kStageLayers);
  }
  return plans;
}

// All results for a plan, computed with caches that other plans may have filled.
class Prices {
 public:
  explicit Prices(const std::shared_ptr<const PriceLists>& lists)
      : pricer_(lists), bounds_(pricer_), groups_(pricer_) {}

  std::vector<double> of(const Plan& plan) {
    const ModelSpec& model = pricer_.scenario().model;
    const StageCut& cut = cuts_.emplace_back(stage_cut(plan.stage_layers, plan.degrees.pp, model));
    const std::vector<StageCut> cuts = {cut};
    const CutFloors floors = cut_floors(cuts, model);
    Plan uncut = plan;
    uncut.stage_layers.clear();
    const PlanBounds::Value value = bounds_.evaluate(uncut, cut, Bytes(1e18));
    const GroupBounds::Times times = groups_.least_times(uncut, floors);
    std::vector<double> numbers = {value.step.value(),
                                   value.peak.value(),
                                   value.busy.value(),
                                   times.step.value(),
                                   times.busy.value(),
                                   groups_.least_held(uncut, floors).value(),
                                   groups_.least_of_block(uncut).value(),
                                   groups_.least_peak(uncut, floors).value(),
                                   bounds_.fits_hosts(uncut, cut) ? 1.0 : 0.0};
    add_prediction(predict(pricer_, plan), numbers);
    return numbers;
  }

 private:
  static void add_prediction(const Result<Prediction>& predicted, std::vector<double>& numbers) {
    REQUIRE(predicted.ok());
    numbers.push_back(predicted->step.value());
    numbers.push_back(predicted->host_memory.value());
    for (const Term& term : predicted->breakdown) {
      if (term.time < Seconds()) FAIL_CHECK(name_of(term.kind) << " takes " << term.time.value());
      numbers.push_back(term.time.value());
    }
    for (const StageMemory& stage : predicted->memory) {
      for (const Bytes bytes : stage.by_category) numbers.push_back(bytes.value());
    }
  }

  LayerPricer pricer_;
  PlanBounds bounds_;
  GroupBounds groups_;
  std::deque<StageCut> cuts_;  // bounds refer to them
};

using Numbers = std::vector<std::vector<double>>;

Numbers alone(const std::shared_ptr<const PriceLists>& lists, const LegalPlans& plans) {
  Numbers numbers;
  for (const Plan& plan : plans) numbers.push_back(Prices(lists).of(plan));
  return numbers;
}

Numbers in_order(const std::shared_ptr<const PriceLists>& lists, const LegalPlans& plans) {
  Prices prices(lists);
  Numbers numbers;
  for (const Plan& plan : plans) numbers.push_back(prices.of(plan));
  return numbers;
}

// Compares all bits.
void check_orders(const Scenario& scenario, LegalPlans plans) {
  const auto lists = std::make_shared<const PriceLists>(scenario);
  const Numbers fresh = alone(lists, plans);
  const Numbers forwards = in_order(lists, plans);
  const LegalPlans backwards(plans.rbegin(), plans.rend());
  Numbers other = in_order(lists, backwards);
  std::reverse(other.begin(), other.end());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (fresh[i] == forwards[i] && fresh[i] == other[i]) continue;
    std::size_t at = 0;
    while (fresh[i][at] == forwards[i][at] && fresh[i][at] == other[i][at]) ++at;
    FAIL_CHECK(short_name(plans[i])
               << " " << gpu_count(plans[i]) << " GPUs, beside " << short_name(plans.front())
               << ", number " << at << ": " << fresh[i][at] << ", " << forwards[i][at] << " or "
               << other[i][at]);
  }
}

}  // namespace

TEST_CASE("time and memory of a plan do not depend on plans priced before, bit for bit") {
  std::mt19937 random(1);
  std::set<Setting> seen;
  for (const Scenario& scenario : scenarios()) {
    for (int round = 0; round < 8; ++round) {
      check_orders(scenario, neighbours(scenario, random, seen));
    }
  }
  for (const SettingRow& row : setting_rows()) {
    INFO(row.key);
    CHECK(seen.contains(row.setting));
  }
}

TEST_CASE("prices do not depend on plans priced before, with any part of the software") {
  std::mt19937 random(2);
  std::set<Setting> seen;
  std::set<std::string> without_plans;  // parts that no plan of these models can have
  for (const PartRow& row : part_rows()) {
    std::vector<std::int64_t> values;
    for (const FieldWord& word : row.words) values.push_back(word.value);
    if (row.kind == FieldKind::kWordOrCount) values.push_back(2);
    for (const std::int64_t value : values) {
      for (Scenario scenario : scenarios()) {
        if (row.get(scenario.stack) == value) continue;
        // A stored weight that is quantized is frozen.
        scenario.stack.training.finetune.adapts = row.part == StackPart::kBaseDtype;
        row.set(scenario.stack, value);
        if (!check_load(scenario.stack, scenario.model).ok()) continue;
        INFO(row.key << " " << text_of(row, value) << ", " << scenario.model.name);
        const LegalPlans plans = neighbours(scenario, random, seen);
        if (plans.empty()) without_plans.insert(std::string(row.key) + " " + text_of(row, value));
        check_orders(scenario, plans);
      }
    }
  }
  CHECK(without_plans == std::set<std::string>{});
}

namespace {

// Searches with one thread and with two: equal plans, each bit-equal to its separate prediction.
void check_threads(const Scenario& scenario, const SearchSpace& space) {
  const Result<SearchResult> one = search(scenario, space, 9, {}, 1);
  const Result<SearchResult> two = search(scenario, space, 9, {}, 2);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(one->feasible == two->feasible);
  CHECK(one->pruned == two->pruned);
  REQUIRE(one->plans.size() == two->plans.size());
  for (std::size_t i = 0; i < one->plans.size(); ++i) {
    const PlannedRun& run = one->plans[i];
    CHECK(run.plan == two->plans[i].plan);
    CHECK(run.predicted.step == two->plans[i].predicted.step);
    const Prediction alone = simulate(scenario, run.plan).value();
    INFO(short_name(run.plan));
    CHECK(run.predicted.step == alone.step);
    CHECK(run.predicted.peak == alone.peak);
  }
}

SearchSpace small_space(std::int64_t gpus) {
  SearchSpace space;
  space.gpus = gpus;
  space.global_batch = 12;
  space.uneven_ends = 0;
  space.asked[Setting::kTp] = {2};
  space.asked[Setting::kAttention] = {static_cast<std::int64_t>(AttentionKind::kFlash)};
  space.asked[Setting::kRecompute] = {static_cast<std::int64_t>(Recompute::kNone)};
  space.asked[Setting::kDtype] = {static_cast<std::int64_t>(DType::kBFloat16)};
  return space;
}

}  // namespace

TEST_CASE(
    "searches with one or two threads equal separate predictions, for all values of a setting") {
  const Scenario scenario = scenario_of(mixture());
  for (const SettingRow& row : setting_rows()) {
    if (row.words.empty()) continue;
    SearchSpace space = small_space(6);
    space.asked[row.setting] = values_of(row);
    std::sort(space.asked[row.setting].begin(), space.asked[row.setting].end());
    INFO(row.key);
    check_threads(scenario, space);
  }
}

TEST_CASE(
    "searches with one or two threads equal separate predictions, with any part of the software") {
  for (const PartRow& row : part_rows()) {
    if (row.words.empty()) continue;
    Scenario scenario = scenario_of(divisible(test::small_gpt()));
    row.set(scenario.stack, row.words.back().value);
    SearchSpace space = small_space(4);
    space.asked[Setting::kPrecision] = {static_cast<std::int64_t>(Precision::kNone),
                                        static_cast<std::int64_t>(Precision::kFp8)};
    INFO(row.key << " " << row.words.back().word);
    check_threads(scenario, space);
  }
}

TEST_CASE("searches with one or two threads equal separate predictions, for several GPU counts") {
  const Scenario scenario = scenario_of(mixture());
  for (const Objective objective : {Objective::kCost, Objective::kEnergy}) {
    SearchSpace space = small_space(8);  // 6 GPUs in nodes of 3, or 8 in nodes of 2
    space.asked[Setting::kPp] = {1};
    space.asked[Setting::kDp] = {3, 4};
    space.asked[Setting::kMicroBatch] = {1};
    space.objective = objective;
    check_threads(scenario, space);
  }
}

}  // namespace tpsim
