#include "app/reports/report_json.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <variant>

#include "app/scenario/open_inputs.h"
#include "core/scenario/plan_json.h"
#include "lowering/passes/quantization.h"
#include "plans/search/certificate.h"
#include "sim/step/order.h"
#include "sim/step/terms.h"

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

// Returns the keys with which every report starts.
JsonValue report_head(const char* version, const NamedScenario& named, std::int64_t gpus) {
  const Scenario& scenario = named.scenario;
  JsonValue json = json_object(
      {{"version", version},
       {"model", scenario.model.name},
       {"parameters", parameter_count(scenario.model)},
       {"active_parameters", active_parameter_count(scenario.model)},
       {"cluster", scenario.cluster.name},
       {"stack", scenario.stack.name},
       {"gpus", gpus},
       {"profile", json_object({{"name", scenario.profile.name},
                                {"provenance", name_of(scenario.profile.provenance)}})}});
  const std::vector<std::string>& notes = scenario.model.notes;
  if (!notes.empty()) json.set("model_notes", json_array(notes));
  if (!named.dropped.empty()) json.set("dropped", json_array(named.dropped));
  return json;
}

JsonValue search_json(const NamedScenario& named, const SearchSpace& space,
                      const SearchResult& found) {
  JsonValue pruned = json_object();
  for (const auto& [reason, count] : found.pruned) pruned.set(reason, count);
  return json_object({{"considered", found.considered},
                      {"feasible", found.feasible},
                      {"simulated", found.simulated},
                      {"pruned", std::move(pruned)},
                      {"objective", name_of(space.objective)},
                      {"leaves_out_offload", found.offload_left_out},
                      {"inputs_hash", hash_text(named.scenario, space)},
                      {"seconds", found.elapsed.value()}});
}

JsonValue part_json(const NamedScenario& named, StackPart part) {
  const PartRow& row = row_of(part);
  return json_object({{"name", row.key},
                      {"value", text_of(row, row.get(named.scenario.stack))},
                      {"asked_for", named.parts.contains(part)}});
}

JsonValue term_json(const Term& term, const NamedScenario& named) {
  return json_object({{"name", name_of(term.kind)},
                      {"time_s", term.time.value()},
                      {"formula", term.formula},
                      {"inputs", term.inputs},
                      {"parts", json_array(options_affecting(term.kind),
                                           [&](StackPart part) { return part_json(named, part); })},
                      {"source", term.source}});
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

JsonValue event_json(const LoweredOp& op) {
  const OpKey& key = op.key;
  std::size_t count = key.dims.size();
  while (count > 0 && key.dims[count - 1] == 0) --count;
  JsonValue json = json_object({{"op", name_of(key.kind)},
                                {"dtype", name_of(key.dtype)},
                                {"dims", json_array(std::span(key.dims).first(count))},
                                {"variant", static_cast<std::int64_t>(key.variant)},
                                {"kernels", op.launches},
                                {"flops", op.flops},
                                {"bytes", op.bytes},
                                {"label", op.label.text}});
  if (op.repeats != 1) json.set("repeats", op.repeats);
  const std::string pass = name_of_pass(op);
  if (!pass.empty()) json.set("pass", pass);
  return json;
}

JsonValue event_json(const LoweredCollective& record) {
  return json_object({{"collective", name_of(record.kind)},
                      {"group", name_of(record.group)},
                      {"ranks", record.ranks},
                      {"bytes", record.bytes},
                      {"calls", record.calls},
                      {"overlap", name_of(record.overlap)},
                      {"label", record.label.text}});
}
JsonValue event_json(const LoweredCopy& copy) {
  return json_object(
      {{"copy", copy.kernels}, {"bytes", copy.moved.value()}, {"label", copy.label.text}});
}
JsonValue event_json(const HostWork& work) {
  return json_object(
      {{"host", work.busy.value()}, {"synchronizes", work.synchronizes}, {"label", work.label}});
}
JsonValue event_json(const IssuedMemory& memory) {
  return json_object({{"memory", memory.is_free ? "free" : "allocate"},
                      {"tensor", static_cast<std::int64_t>(memory.tensor)},
                      {"category", name_of(memory.record.category)},
                      {"bytes", memory.record.bytes},
                      {"label", memory.record.label}});
}

JsonValue event_json(const IssuedEvent& event) {
  JsonValue json = std::visit([](const auto& one) { return event_json(one); }, event.what);
  if (std::holds_alternative<IssuedMemory>(event.what)) return json;
  json.set("stream", name_of(event.stream));
  json.set("time_s", event.time.value());
  if (!event.source.empty()) json.set("source", event.source);
  return json;
}

JsonValue phase_json(const PhaseProgram& program) {
  return json_object({{"phase", name_of(program.phase)},
                      {"events", json_array(program.events, [](const IssuedEvent& event) {
                         return event_json(event);
                       })}});
}

JsonValue program_json(const PartProgram& program) {
  JsonValue json = json_object({{"part", name_of(program.part)}, {"count", program.count}});
  if (program.part == ProgramPart::kBlock) {
    json.set("block", program.block);
    json.set("recomputed", program.is_recomputed);
  }
  json.set("phases", json_array(program.phases, phase_json));
  return json;
}

// Adds "parts_searched" and "parts_not_searched" to the report.
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
}

}  // namespace

void add_assumed(JsonValue& report, const Assumed& assumed) {
  if (assumed.open.empty()) return;
  report.set("assumed",
             json_object({{"half_width_pct_all_stated", 100 * assumed.half_width_all_stated},
                          {"half_width_pct_all_open", 100 * assumed.half_width_all_open},
                          {"open", json_array(assumed.open, [](const OpenChoice& one) {
                             return json_object(
                                 {{"what", name_of(one.input)},
                                  {"taken", one.taken},
                                  {"option", option_of(field_of(one.input))},
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
  json.set("plans", json_array(found.plans, [&](const PlannedRun& run) {
             return ranked_json(run, found.plans.front(), space.objective);
           }));
  add_assumed(json, named.assumed);
  if (found.nearest_miss) json.set("nearest_miss", run_json(*found.nearest_miss));
  return json;
}

JsonValue simulate_report(const NamedScenario& named, const PlannedRun& run) {
  JsonValue json = report_head("tpsim-simulate-report/1", named, gpu_count(run.plan));
  JsonValue plan = run_json(run);
  for (JsonMember& member : *plan.as<JsonValue::Object>()) {
    json.set(std::move(member.key), std::move(member.value));
  }
  add_assumed(json, named.assumed);
  return json;
}

JsonValue explain_report(const NamedScenario& named, const PlannedRun& run) {
  JsonValue json = report_head("tpsim-explain-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  json.set("terms", json_array(run.predicted.breakdown,
                               [&](const Term& term) { return term_json(term, named); }));
  add_assumed(json, named.assumed);
  return json;
}

JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs) {
  JsonValue json = report_head("tpsim-program-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  json.set("programs", json_array(programs, program_json));
  add_assumed(json, named.assumed);
  return json;
}

}  // namespace tpsim::app
