#include "app/reports/answer_json.h"

#include "app/reports/report_json.h"

namespace tpsim::app {
namespace {

JsonValue difference_json(const TermDifference& term) {
  return json_object({{"name", term.name},
                      {"best_s", term.best.value()},
                      {"other_s", term.other.value()},
                      {"difference_s", term.difference().value()}});
}

JsonValue fix_json(const Fix& fix) {
  return json_object({{"given_up", to_string(fix.given_up)},
                      {"instead", to_string(fix.instead)},
                      {"plan", run_json(fix.run)}});
}

JsonValue shape_json(const ShapeFinding& finding) {
  return json_object(
      {{"what", finding.what}, {"better", json_array(finding.better, [](const auto& better) {
                                  return json_object({{"size", better.change.size},
                                                      {"from", better.change.from},
                                                      {"to", better.change.to},
                                                      {"gain", better.gain}});
                                })}});
}

JsonValue differences_json(const std::vector<PlanDifference>& differences) {
  JsonValue json = json_object();
  for (const PlanDifference& one : differences) json.set(one.name, json_array(one.values));
  return json;
}

JsonValue compared_json(const ComparedPlan& one, bool shares_errors) {
  JsonValue plan = run_json(one.run);
  plan.set("file", one.file);
  plan.set("model", one.named.scenario.model.name);
  plan.set("cluster", one.named.cluster);
  plan.set("profile", one.named.profile);
  plan.set("stack", one.named.stack);
  plan.set("fits", fits_in_memory(one.run.predicted));
  plan.set("tokens_per_s_per_gpu", one.tokens_per_s_per_gpu());
  plan.set("gpu_hours_per_billion_tokens", gpu_hours_per_billion_tokens(one.run));
  if (shares_errors) {
    plan.set("p_faster_than_first", one.faster);
    plan.set("ties_with_first", one.is_tie);
  }
  JsonValue times = json_object();
  for (const StepTerm term : kStepTerms) {
    times.set(std::string(name_of(term)), time_of(one.run.predicted, term).value());
  }
  return plan.set("terms_s", std::move(times));
}

}  // namespace

JsonValue why_not_json(const WhyNot& answer) {
  JsonValue json = json_object({{"version", "tpsim-why-not-report/1"},
                                {"asked", to_string(answer.asked)},
                                {"best", run_json(answer.best)}});
  if (answer.other) {
    json.set("other", run_json(*answer.other));
    json.set("ties", answer.ties);
    json.set("waterfall", json_array(answer.waterfall, difference_json));
    return json;
  }
  if (answer.nearest_miss) json.set("nearest_miss", run_json(*answer.nearest_miss));
  if (!answer.illegal.empty()) json.set("illegal", answer.illegal);
  json.set("mends", json_array(answer.fixes, fix_json));
  json.set("enough_gpus", answer.enough_gpus);
  return json;
}

JsonValue what_if_json(const WhatIfAnswer& answer) {
  JsonValue json =
      json_object({{"version", "tpsim-what-if-report/1"}, {"plan", run_json(answer.run)}});
  json.set("sensitivities", json_array(answer.sensitivities, [](const Sensitivity& one) {
             return json_object({{"constant", name_of(one.constant)},
                                 {"factor", kNudge},
                                 {"step_s", one.step.value()},
                                 {"change", one.change}});
           }));
  if (answer.searched) {
    json.set("memory_break_evens", json_array(answer.memory, [](const MemoryBreakEven& one) {
               return json_object({{"memory_gib", one.memory.value() / kGiB},
                                   {"gain", one.gain ? JsonValue(*one.gain) : JsonValue()},
                                   {"plan", run_json(one.run)}});
             }));
    json.set("plan_break_evens", json_array(answer.plans, [](const PlanBreakEven& one) {
               return json_object({{"constant", name_of(one.constant)},
                                   {"factor", one.factor},
                                   {"plan", short_name(one.after)}});
             }));
  }
  json.set(
      "precision_break_evens", json_array(answer.precisions, [](const PrecisionBreakEven& one) {
        return json_object(
            {{"precision", name_of(one.precision)}, {"hidden", one.width}, {"gain", one.gain}});
      }));
  json.set("shape", json_array(answer.shapes, shape_json));
  return json;
}

JsonValue scaling_json(const ScalingAnswer& answer) {
  const NamedScenario& named = answer.named;
  const ScalingSize* const first = answer.baseline();
  JsonValue json = json_object({{"version", "tpsim-scaling-report/1"},
                                {"model", named.scenario.model.name},
                                {"cluster", named.cluster},
                                {"profile", named.profile},
                                {"stack", named.stack}});
  json.set(
      "sizes", json_array(answer.sizes, [&](const ScalingSize& size) {
        JsonValue row = json_object({{"gpus", size.gpus}, {"global_batch", size.global_batch}});
        if (!size.best) return row.set("none", size.why_none), row;
        row.set("tokens_per_s_per_gpu", size.rate());
        row.set("efficiency", size.rate() / first->rate());
        row.set("best", run_json(*size.best));
        if (!size.parts.empty()) row.set("parts", parts_json(size.parts));
        return row;
      }));
  return json;
}

JsonValue compare_json(const CompareAnswer& answer) {
  JsonValue json = json_object({{"version", "tpsim-compare-report/1"}});
  json.set("plans", json_array(answer.plans, [&](const ComparedPlan& one) {
             return compared_json(one, answer.shares_errors);
           }));
  return json.set("differs", differences_json(answer.differences));
}

}  // namespace tpsim::app
