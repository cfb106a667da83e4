#include "app/reports/report_json.h"

#include <fmt/format.h>

#include <string>

#include "app/scenario/allocated.h"
#include "app/scenario/available_part.h"
#include "app/scenario/open_inputs.h"
#include "core/scenario/plan_json.h"
#include "plans/search/certificate.h"
#include "sim/step/order.h"

namespace tpsim::app {
namespace {

JsonValue stage_memory_json(const StageMemory& memory) {
  JsonValue json = json_object({{"stage", memory.stage}});
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    json.set(std::string(name_of(static_cast<MemoryCategory>(i))),
             gib(memory.by_category[static_cast<std::size_t>(i)]));
  }
  json.set("context", gib(memory.context));
  json.set("fragmentation", gib(memory.fragmentation));
  json.set("total", gib(memory.total()));
  return json;
}

JsonValue sources_json(const Sources& sources) {
  return json_object({{"exact_entries", sources.exact_entries},
                      {"interpolated_entries", sources.interpolated_entries},
                      {"model", sources.model}});
}

JsonValue prediction_json(const Prediction& predicted) {
  JsonValue breakdown = json_object();
  for (const Term& term : predicted.breakdown)
    breakdown.set(std::string(name_of(term.kind)), term.time.value());
  return json_object({
      {"step_s", predicted.step.value()},
      {"step_s_low", predicted.step_low.value()},
      {"step_s_high", predicted.step_high.value()},
      {"hw_tflops_per_gpu", predicted.hardware_tflops_per_gpu},
      {"model_tflops_per_gpu", predicted.model_tflops_per_gpu},
      {"half_mask_tflops_per_gpu", predicted.half_mask_tflops_per_gpu},
      {"mfu", predicted.mfu},
      {"tokens_per_s", predicted.tokens_per_s},
      {"bubble_fraction", predicted.bubble_fraction},
      {"p_oom", predicted.p_oom},
      {"memory_gib", json_object({{"capacity", gib(predicted.capacity)},
                                  {"peak", gib(predicted.peak)},
                                  {"host_of_node", gib(predicted.host_memory)},
                                  {"by_stage", json_array(predicted.memory, stage_memory_json)}})},
      {"breakdown_s", std::move(breakdown)},
      {"sources", sources_json(predicted.sources)},
  });
}

JsonValue search_json(const NamedScenario& named, const SearchSpace& space,
                      const SearchResult& found) {
  JsonValue pruned = json_object();
  for (const auto& [reason, count] : found.pruned) pruned.set(reason, count);
  return json_object({{"considered", found.considered},
                      {"feasible", found.feasible},
                      {"simulated", found.simulated},
                      {"pruned", std::move(pruned)},
                      {"complete", found.is_complete()},
                      {"visited", found.visited},
                      {"not_compared", found.not_compared},
                      {"objective", name_of(space.objective)},
                      {"group", name_of(space.group)},
                      {"leaves_out_offload", found.offload == OffloadSearch::kLeftOut},
                      {"offload", name_of(found.offload)},
                      {"held_fixed", parts_json(held_parts(named))},
                      {"inputs_hash", hash_text(named.scenario, space)},
                      {"seconds", found.elapsed.value()}});
}

// Returns a plan with its prediction and, if the objective is time, the probability that the best
// plan is faster.
JsonValue ranked_json(const PlannedRun& run, const PlannedRun& best, Objective objective) {
  JsonValue json = run_json(run);
  if (objective != Objective::kTime) return json;
  json.set("p_best_is_faster", probability_faster(best.predicted.step, run.predicted.step));
  json.set("ties", &run != &best && is_tie(best.predicted.step, run.predicted.step));
  return json;
}

JsonValue choice_json(const ChoiceRisk& risk) {
  JsonValue json = json_object({{"chance_fastest", risk.chance_fastest},
                                {"expected_loss_pct", 100 * risk.expected_loss},
                                {"rival", static_cast<std::int64_t>(risk.rival)},
                                {"loss_pct_if_run", 100 * risk.loss_if_run}});
  if (risk.input) {
    json.set("option", stating_option(*risk.input));
    json.set("loss_pct_if_stated", 100 * risk.loss_if_stated);
  }
  return json;
}

// Adds "parts_searched", "parts_not_searched" and "other_batch" to the report.
void add_tried(JsonValue& report, const NamedScenario& named) {
  const auto add = [&](const char* key, const std::vector<TriedParts>& all) {
    if (all.empty()) return;
    report.set(key, json_array(all, [](const TriedParts& one) {
                 JsonValue row = json_object({{"parts", parts_json(one.parts)}});
                 if (one.step) row.set("step_s", one.step->value());
                 return row;
               }));
  };
  add("parts_searched", named.tried);
  add("parts_not_searched", named.untried);
  if (named.other_batch) report.set("other_batch", run_json(*named.other_batch));
}

// Adds where the ranks of the plan run.
void add_allocation(JsonValue& report, const NamedScenario& named, const PlannedRun& run) {
  if (named.allocation.empty()) return;
  JsonValue json = json_object({{"hosts", std::ssize(named.allocation.hosts)}});
  json.set("nodes", json_array(used_nodes(named, run.plan), [](const UsedNode& node) {
             return json_object({{"name", node.name},
                                 {"hosts", node.hosts},
                                 {"gpus", node.shape.gpus},
                                 {"nics", node.shape.nics},
                                 {"ranks", ranges_text(node.ranks)}});
           }));
  if (const auto& equal = named.equal_nodes) {
    const Seconds step = run.predicted.step;
    json.set("equal_nodes", json_object({{"nodes", equal->nodes},
                                         {"gpus_per_node", equal->gpus_per_node},
                                         {"step_s", equal->step.value()},
                                         {"change_pct", 100 * (equal->step - step) / step}}));
  }
  report.set("allocation", std::move(json));
}

}  // namespace

JsonValue report_head(const char* version, const NamedScenario& named, std::int64_t gpus) {
  const Scenario& scenario = named.scenario;
  JsonValue json = json_object(
      {{"version", version},
       {"model", scenario.model.name},
       {"parameters", parameter_count(scenario.model)},
       {"active_parameters", active_parameter_count(scenario.model)},
       {"cluster", scenario.cluster.name},
       {"stack", scenario.stack.name},
       {"seq", scenario.model.seq},
       {"gpus", gpus},
       {"profile", json_object({{"name", scenario.profile.name},
                                {"provenance", name_of(scenario.profile.provenance)}})}});
  if (const Finetune& tuned = scenario.stack.training.finetune; tuned.freezes()) {
    const TrainedCounts counts = trained_counts(scenario.model, tuned);
    json.set("trained_parameters", counts.trained);
    json.set("frozen_parameters", counts.frozen);
  }
  const std::vector<std::string>& notes = scenario.model.notes;
  if (!notes.empty()) json.set("model_notes", json_array(notes));
  if (!named.remedy.empty()) json.set("remedy", named.remedy);
  if (!named.dropped.empty()) json.set("dropped", json_array(named.dropped));
  return json;
}

void add_assumed(JsonValue& report, const Assumed& assumed) {
  if (assumed.open.empty()) return;
  report.set("assumed",
             json_object({{"half_width_pct_all_stated", 100 * assumed.half_width_all_stated},
                          {"half_width_pct_all_open", 100 * assumed.half_width_all_open},
                          {"open", json_array(assumed.open, [](const OpenChoice& one) {
                             return json_object(
                                 {{"what", name_of(one.input)},
                                  {"taken", one.taken},
                                  {"option", stating_option(one.input)},
                                  {"others", one.others},
                                  {"spread_pct", 100 * one.slower},
                                  {"spread_faster_pct", 100 * one.faster},
                                  {"half_width_pct_if_stated", 100 * one.half_width_if_stated}});
                           })}}));
}

JsonValue parts_json(const PartValues& parts) {
  JsonValue json = json_object();
  for (const auto& [part, value] : parts) {
    json.set(std::string(row_of(part).key), text_of(row_of(part), value));
  }
  return json;
}

std::string hash_text(const Scenario& scenario, const SearchSpace& space) {
  return fmt::format("fnv1a:{:016x}", inputs_hash(scenario, space));
}

JsonValue run_json(const PlannedRun& run) {
  JsonValue json = plan_to_json(run.plan);
  json.set("predicted", prediction_json(run.predicted));
  return json;
}

JsonValue plan_report(const NamedScenario& named, const SearchSpace& space,
                      const SearchResult& found) {
  JsonValue json = report_head("tpsim-plan-report/1", named, space.gpus);
  json.set("search", search_json(named, space, found));
  add_tried(json, named);
  if (!found.plans.empty()) add_allocation(json, named, found.plans.front());
  json.set("plans", json_array(found.plans, [&](const PlannedRun& run) {
             return ranked_json(run, found.plans.front(), space.objective);
           }));
  add_assumed(json, named.assumed);
  if (named.risk) json.set("choice", choice_json(*named.risk));
  if (found.nearest_miss) json.set("nearest_miss", run_json(*found.nearest_miss));
  return json;
}

JsonValue simulate_report(const NamedScenario& named, const PlannedRun& run) {
  JsonValue json = report_head("tpsim-simulate-report/1", named, gpu_count(run.plan));
  add_allocation(json, named, run);
  JsonValue plan = run_json(run);
  for (JsonMember& member : *plan.as<JsonValue::Object>()) {
    json.set(std::move(member.key), std::move(member.value));
  }
  add_assumed(json, named.assumed);
  return json;
}

}  // namespace tpsim::app
