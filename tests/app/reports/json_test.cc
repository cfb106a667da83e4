// JSON for programs: the reports of --json and the trace of a timeline.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "app/answers/term_texts.h"
#include "app/reports/program_json.h"
#include "app/reports/report_json.h"
#include "app/reports/trace_json.h"
#include "core/json/json_document.h"
#include "sim/step/simulate.h"
#include "tests/cli/small_run.h"
#include "tests/sim/small_scenario.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim::app {
namespace {

std::vector<std::string> keys_of(const JsonValue& value) {
  std::vector<std::string> keys;
  for (const JsonMember& member : *value.as<JsonValue::Object>()) keys.push_back(member.key);
  return keys;
}

NamedScenario named_scenario() {
  NamedScenario named;
  named.scenario = test::small_scenario(test::small_bloom());
  named.scenario.model.name = "m";
  named.scenario.cluster.name = "c";
  named.scenario.profile.name = "p";
  return named;
}

double number(const JsonValue& value) {
  if (const auto* whole = value.as<std::int64_t>()) return static_cast<double>(*whole);
  return *value.as<double>();
}

Timeline two_stages() {
  Timeline timeline;
  timeline.stages = 2;
  timeline.end = 40'000'000;
  timeline.spans = {{0, SpanKind::kForward, 0, 3, 0, 10'000'000},
                    {0, SpanKind::kTransfer, 0, 3, 10'000'000, 30'000'000},
                    {0, SpanKind::kTransfer, 0, 4, 20'000'000, 40'000'000},
                    {0, SpanKind::kTransfer, 0, 5, 30'000'000, 40'000'000},
                    {1, SpanKind::kOptimizer, 0, 0, 30'000'000, 40'000'000}};
  return timeline;
}

}  // namespace

TEST_CASE("a plan report holds the keys of the contract") {
  SearchResult found;
  found.considered = 3;
  found.feasible = 1;
  found.pruned["too big"] = 2;
  found.plans = {test::small_run()};
  SearchSpace space;
  space.gpus = 8;
  const JsonValue report = plan_report(named_scenario(), space, found);
  CHECK(keys_of(report) == std::vector<std::string>{"version", "model", "parameters",
                                                    "active_parameters", "cluster", "stack", "seq",
                                                    "gpus", "profile", "search", "plans"});
  const JsonValue& plan = report.find("plans")->as<JsonValue::Array>()->front();
  for (const char* key :
       {"tp", "pp", "dp", "cp", "virtual_stages", "zero", "micro_batch", "global_batch",
        "sequence_parallel", "recompute", "attention", "schedule", "stage_layers", "predicted"}) {
    INFO(key);
    CHECK(plan.find(key) != nullptr);
  }
  const JsonValue& predicted = *plan.find("predicted");
  for (const char* key :
       {"step_s", "step_s_low", "step_s_high", "hw_tflops_per_gpu", "model_tflops_per_gpu", "mfu",
        "tokens_per_s", "bubble_fraction", "memory_gib", "breakdown_s"}) {
    INFO(key);
    CHECK(predicted.find(key) != nullptr);
  }
  const JsonValue& stages = *predicted.find("memory_gib")->find("by_stage");
  CHECK(keys_of(stages.as<JsonValue::Array>()->front()) ==
        std::vector<std::string>{"stage", "weights", "gradients", "optimizer", "activations",
                                 "workspace", "communication", "context", "fragmentation",
                                 "total"});
}

TEST_CASE("the terms of a report add up to its step and a stage's parts to its total") {
  const JsonValue report = simulate_report(named_scenario(), test::small_run());
  const JsonValue& predicted = *report.find("predicted");
  double sum = 0;
  for (const JsonMember& term : *predicted.find("breakdown_s")->as<JsonValue::Object>()) {
    sum += number(term.value);
  }
  CHECK(sum == Approx(number(*predicted.find("step_s"))));
  for (const JsonValue& stage :
       *predicted.find("memory_gib")->find("by_stage")->as<JsonValue::Array>()) {
    double parts = 0;
    for (const JsonMember& part : *stage.as<JsonValue::Object>()) {
      if (part.key != "stage" && part.key != "total") parts += number(part.value);
    }
    CHECK(parts == Approx(number(*stage.find("total"))));
  }
}

TEST_CASE("a program report has ops, collectives and memory by part and phase") {
  const Label label{ModelPart::kMlpLinear, "mlp.up"};
  const OpRecord op{{OpKind::kMatmul, DType::kBFloat16, kTransposeB, {1, 2, 3, 4}}, 48, 52, label};
  LoweredOp launched{op};
  launched.launches = 2;
  const LoweredCollective sum{{CollectiveKind::kAllReduce, GroupKind::kTensor, 2, 12, label}};
  const IssuedMemory freed{{{16, MemoryCategory::kActivations, "mlp.up"}}, 7, true};
  const PartProgram block{.part = ProgramPart::kBlock,
                          .count = 8,
                          .phases = {{Phase::kForward, {{launched}, {sum}, {freed}}}}};
  const JsonValue report = program_report(named_scenario(), test::small_run(), {block});
  const JsonValue& part = report.find("programs")->as<JsonValue::Array>()->front();
  CHECK(keys_of(part) ==
        std::vector<std::string>{"part", "count", "block", "recomputed", "phases"});
  const JsonValue& phase = part.find("phases")->as<JsonValue::Array>()->front();
  const JsonValue::Array& events = *phase.find("events")->as<JsonValue::Array>();
  REQUIRE(events.size() == 3);
  CHECK(keys_of(events[0]) == std::vector<std::string>{"op", "dtype", "dims", "variant", "kernels",
                                                       "flops", "bytes", "label", "stream",
                                                       "time_s"});
  CHECK(events[0].find("dims")->as<JsonValue::Array>()->size() == 4);
  CHECK(keys_of(events[1]) == std::vector<std::string>{"collective", "group", "ranks", "bytes",
                                                       "calls", "mover", "label", "stream",
                                                       "time_s"});
  CHECK(keys_of(events[2]) ==
        std::vector<std::string>{"memory", "tensor", "category", "bytes", "label"});
  CHECK(*events[2].find("memory")->as<std::string>() == "free");
}

TEST_CASE("every report parses back") {
  const PlannedRun run = test::small_run();
  for (const JsonValue& report :
       {simulate_report(named_scenario(), run), explain_report(named_scenario(), run)}) {
    CHECK(parse_json(to_text(report), "report").ok());
  }
}

TEST_CASE("a trace is valid JSON with one complete event for each span, in microseconds") {
  const auto trace =
      parse_json(trace_json({.timeline = two_stages()}, {}, "a \"title\"\n"), "trace");
  REQUIRE(trace.ok());
  std::vector<const JsonValue*> spans;
  for (const JsonValue& event : *trace->find("traceEvents")->as<JsonValue::Array>()) {
    if (*event.find("ph")->as<std::string>() == "X") spans.push_back(&event);
  }
  REQUIRE(spans.size() == 5);
  CHECK(number(*spans[1]->find("ts")) == 10);
  CHECK(number(*spans[1]->find("dur")) == 20);
  CHECK(number(*spans[0]->find("args")->find("micro_batch")) == 3);
  CHECK(spans[4]->find("args")->find("micro_batch") == nullptr);
}

TEST_CASE("the memory counters of a trace peak at the predicted memory of each stage") {
  const test::StepCase c = test::step_cases().front();
  Scenario scenario = test::scenario_of(c);
  scenario.stack.memory.context = Bytes(kGiB);
  scenario.stack.memory.fragmentation = 0.1;
  const Prediction predicted = simulate(scenario, c.plan).value();
  const auto trace =
      parse_json(trace_json(step_memory(scenario, c.plan).value(), {}, "a step"), "trace");
  REQUIRE(trace.ok());
  std::map<std::string, double> peaks;
  for (const JsonValue& event : *trace->find("traceEvents")->as<JsonValue::Array>()) {
    if (*event.find("ph")->as<std::string>() != "C") continue;
    double sum = 0;
    for (const JsonMember& member : *event.find("args")->as<JsonValue::Object>()) {
      sum += number(member.value);
    }
    double& peak = peaks[*event.find("name")->as<std::string>()];
    peak = std::max(peak, sum);
  }
  REQUIRE(peaks.size() == predicted.memory.size());
  for (const StageMemory& memory : predicted.memory) {
    CHECK(peaks.at("memory of stage " + std::to_string(memory.stage) + ", GiB") ==
          Approx(memory.total().value() / kGiB).epsilon(1e-4));
  }
}

TEST_CASE("spans on one track of a trace never overlap and stages never share one") {
  const auto trace = parse_json(trace_json({.timeline = two_stages()}, {}, ""), "trace");
  REQUIRE(trace.ok());
  std::vector<double> tracks;
  for (const JsonValue& event : *trace->find("traceEvents")->as<JsonValue::Array>()) {
    if (*event.find("ph")->as<std::string>() == "X") tracks.push_back(number(*event.find("tid")));
  }
  // Track 0: compute of stage 0. Its second transfer overlaps the first and needs a second track.
  // The third transfer uses the first transfer's track again. Stage 1 has the track after them.
  CHECK(tracks == std::vector<double>{1, 2, 3, 2, 4});
}

TEST_CASE("a trace has the keys of Chrome's trace events, and arrows with two ends on its tracks") {
  const test::StepCase c = test::step_cases().front();
  const Scenario scenario = test::scenario_of(c);
  const StepMemory step = step_memory(scenario, c.plan).value();
  LayerPricer pricer(scenario);
  const auto trace =
      parse_json(trace_json(step, stream_spans(pricer, c.plan, step.timeline), "a step"), "trace");
  REQUIRE(trace.ok());
  std::map<std::string, std::vector<std::string>> needed = {
      {"X", {"name", "cat", "ts", "dur", "pid", "tid"}},
      {"M", {"name", "pid", "tid", "args"}},
      {"C", {"name", "ts", "pid", "args"}},
      {"s", {"name", "id", "ts", "pid", "tid"}},
      {"f", {"name", "id", "ts", "pid", "tid", "bp"}}};
  std::map<double, std::vector<double>> arrows;
  std::set<double> processes;
  for (const JsonValue& event : *trace->find("traceEvents")->as<JsonValue::Array>()) {
    const std::string kind = *event.find("ph")->as<std::string>();
    REQUIRE(needed.contains(kind));
    for (const std::string& key : needed.at(kind)) CHECK(event.find(key) != nullptr);
    if (kind == "X") processes.insert(number(*event.find("pid")));
    if (kind == "s" || kind == "f") {
      arrows[number(*event.find("id"))].push_back(number(*event.find("ts")));
    }
  }
  CHECK(static_cast<std::int64_t>(processes.size()) == 1 + c.plan.degrees.pp);
  for (const auto& [id, times] : arrows) {
    REQUIRE(times.size() == 2);
    CHECK(times[0] <= times[1]);
  }
}

TEST_CASE("every term of a step has a formula and a source") {
  for (const test::StepCase& c : test::step_cases()) {
    const Scenario scenario = test::scenario_of(c);
    const Result<Prediction> predicted = simulate(scenario, c.plan);
    REQUIRE(predicted.ok());
    for (const TermText& text : term_texts(scenario, {c.plan, *predicted})) {
      CHECK_FALSE(text.formula.empty());
      CHECK_FALSE(text.source.empty());
    }
  }
}

}  // namespace tpsim::app
