// Predictions of all accepted inputs: numbers are finite and not negative, terms add up to the
// step, and memory categories to the peak.
#include <cmath>

#include "app/reports/report_json.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/software/stack_json.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::fuzz {
namespace {

bool is_sound(double number) { return std::isfinite(number) && number >= 0; }

void check_prediction(const Scenario& scenario, const PlannedRun& run) {
  const Prediction& p = run.predicted;
  demand(is_sound(p.step.value()) && is_sound(p.step_low.value()), "a step takes time");
  demand(p.step_low <= p.step && p.step <= p.step_high, "an interval holds its middle");
  Seconds terms;
  for (const Term& term : p.breakdown) terms += term.time;
  demand(std::abs((terms - p.step).value()) <= 1e-6 * p.step.value(), "terms add up to the step");
  Bytes peak;
  for (const StageMemory& stage : p.memory) {
    Bytes sum = stage.context + stage.fragmentation;
    for (const Bytes part : stage.by_category) {
      demand(is_sound(part.value()), "no memory is less than nothing");
      sum += part;
    }
    demand(std::abs((sum - stage.total()).value()) <= 1e-6 * sum.value(), "memory adds up");
    peak = std::max(peak, stage.total());
  }
  demand(peak == p.peak, "the fullest stage is the peak");
  demand(p.p_oom >= 0 && p.p_oom <= 1, "a probability is one");
  // to_text() fails for numbers that are not finite.
  static_cast<void>(to_text(app::simulate_report({scenario, "c", "p", "s", {}}, run)));
}

void simulate_and_check(const Scenario& scenario, const Plan& plan) {
  const auto predicted = simulate(scenario, plan);
  if (predicted.ok()) check_prediction(scenario, {plan, *predicted});
}

// Choices, each decided by the next byte.
class Draws {
 public:
  explicit Draws(std::string_view bytes) : bytes_(bytes) {}
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[next() % values.size()];
  }
  double factor() { return std::exp2(static_cast<double>(next() % 64) - 32); }
  bool flag() { return next() % 2 != 0; }

 private:
  std::size_t next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::string_view bytes_;
};

ModelSpec drawn_model(Draws& draws) {
  ModelSpec model = draws.flag() ? test::small_llama() : test::small_bloom();
  if (draws.flag()) model = draws.flag() ? test::small_gpt() : test::small_mixture();
  model.layers = draws.one_of({1, 2, 3, 4, 6, 8, 12, 16});
  model.seq = draws.one_of({1, 2, 16, 64, 128, 4096, 1 << 20});
  model.vocab = draws.one_of({1, 100, 5000, 1 << 20});
  model.ffn_hidden = draws.one_of({1, 64, 1408, 2048, 1 << 20});
  model.attention.heads = draws.one_of({1, 2, 4, 8, 12});
  model.attention.kv_heads = model.fused_qkv ? model.attention.heads : draws.one_of({1, 2, 4});
  return model;
}

Plan drawn_plan(Draws& draws, const ModelSpec& model) {
  Plan plan;
  plan.degrees = {draws.one_of({1, 2, 4, 8}), draws.one_of({1, 2, 4, 8}), draws.one_of({1, 2, 4}),
                  draws.one_of({1, 1, 2}), draws.one_of({1, 1, 2})};
  plan.virtual_stages = draws.one_of({1, 1, 2, 3});
  if (plan.virtual_stages > 1) plan.schedule = ScheduleKind::kInterleaved;
  if (plan.virtual_stages == 1 && draws.flag()) plan.schedule = ScheduleKind::kGpipe;
  plan.micro_batch = draws.one_of({1, 2, 3, 8});
  plan.global_batch =
      plan.micro_batch * plan.degrees.dp * plan.degrees.pp * draws.one_of({1, 2, 5});
  plan.zero = static_cast<int>(draws.one_of({0, 1, 2, 3}));
  plan.sequence_parallel = draws.flag();
  plan.recompute = static_cast<Recompute>(draws.one_of({0, 1, 2, 3}));
  if (plan.recompute == Recompute::kBlocks) plan.recompute_blocks = draws.one_of({1, 2, 3});
  plan.attention = draws.flag() ? AttentionKind::kFlash : AttentionKind::kUnfused;
  plan.offload = draws.flag() ? Offload::kOptimizer : Offload::kNone;
  plan.stage_layers = even_stage_layers(model.layers, chunk_count(plan), draws.flag());
  return plan;
}

}  // namespace

// Model, cluster, stack and profile, separated by zero bytes. Missing inputs are those of the small
// test scenario.
void predict_inputs(std::string_view bytes) {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.limits = {Seconds(0.05), Bytes(16 * kMiB)};
  const auto take = [&](auto parse, auto& into) {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view text = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (text.empty()) return true;
    auto parsed = parse(text, "input");
    if (!parsed.ok()) return false;
    into = *std::move(parsed);
    return true;
  };
  const bool all_read = take(parse_model, scenario.model) &&
                        take(parse_cluster, scenario.cluster) &&
                        take(parse_stack, scenario.stack) && take(parse_profile, scenario.profile);
  if (!all_read) return;
  Plan plan = test::plan_of(scenario.model, {}, 2);
  simulate_and_check(scenario, plan);
  plan.degrees.pp = 2;
  plan.stage_layers = even_stage_layers(scenario.model.layers, 2, false);
  if (!plan.stage_layers.empty()) simulate_and_check(scenario, plan);
  SearchSpace space;
  space.gpus = 2;
  space.global_batch = 4;
  const auto found = search(scenario, space, 2, {});
  if (!found.ok()) return;
  for (const PlannedRun& run : found->plans) check_prediction(scenario, run);
}

void predict_drawn(std::string_view bytes) {
  Draws draws(bytes);
  Scenario scenario = test::small_scenario(drawn_model(draws));
  scenario.limits = {Seconds(0.05), Bytes(16 * kMiB)};
  const Plan plan = drawn_plan(draws, scenario.model);
  scenario.cluster.inter_node.bandwidth *= draws.factor();
  scenario.profile.device.matmul_peak *= draws.factor();
  scenario.profile.device.memory *= draws.factor();
  scenario.stack.host.per_op *= draws.factor();
  const auto slow = simulate(scenario, plan);
  if (!slow.ok()) return;
  check_prediction(scenario, {plan, *slow});
  scenario.cluster.inter_node.bandwidth *= 2;
  const auto fast = simulate(scenario, plan);
  demand(fast.ok() && fast->step <= slow->step * (1 + 1e-9), "more bandwidth is never slower");
}

}  // namespace tpsim::fuzz
