// A saved plan is complete. Options that repeat its values change nothing, --cluster changes only
// the cluster, and searches that start from the plan keep its fixed settings.
#include <algorithm>
#include <catch2/catch.hpp>

#include "app/reports/report_json.h"
#include "app/scenario/allocated.h"
#include "app/scenario/available_part.h"
#include "app/scenario/fit.h"
#include "cli/commands/commands.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/cli/typed_answers.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

using Given = std::vector<std::pair<Opt, std::string>>;

Arguments arguments_of(Command command, const Given& given) {
  Arguments arguments;
  arguments.command = command;
  for (const auto& [opt, text] : given) arguments.set(opt, text);
  return arguments;
}

// Plans that together fill every field of a plan file.
std::vector<Given> drawn_plans() {
  const auto of = [](Setting setting) { return opt_of(setting); };
  return {
      {{Opt("--model"), "llama-3-8b"},
       {Opt("--cluster"), "dgx-b200"},
       {Opt("--stack"), "megatron-core"},
       {Opt("--node-gbps"), "1600"},
       {Opt("--seq"), "4096"},
       {of(Setting::kTp), "2"},
       {of(Setting::kPp), "2"},
       {of(Setting::kDp), "4"},
       {of(Setting::kStageLayers), "15,17"},
       {of(Setting::kPrecision), "mxfp8"},
       {of(Setting::kSequenceParallel), "on"},
       {of(Setting::kRankOrder), "tp-pp-dp"},
       {of(Setting::kRecompute), "blocks:3"},
       {opt_of(StackPart::kNormKernel), "torch"},
       {opt_of(StackPart::kOptimizerDtype), "bf16"}},
      {{Opt("--model"), "mixtral-8x7b"},
       {Opt("--cluster"), "dgx-h100"},
       {Opt("--stack"), "nemo"},
       {of(Setting::kPp), "2"},
       {of(Setting::kDp), "8"},
       {of(Setting::kEp), "4"},
       {of(Setting::kGradientDtype), "bf16"},
       {opt_of(StackPart::kDispatcher), "deepep"},
       {opt_of(StackPart::kExpertLoad), "1.5"}},
      {{Opt("--model"), "llama-3-8b"},
       {Opt("--cluster"), "gb200-nvl72"},
       {Opt("--stack"), "megatron-core"},
       {Opt("--nodes"), "a[1-3] rack=r1; b1 rack=r2 nics=2"},
       {of(Setting::kTp), "2"},
       {of(Setting::kPp), "2"},
       {of(Setting::kDp), "4"}},
      // No stack is given.
      {{Opt("--model"), "bloom-3b"},
       {Opt("--cluster"), "jean-zay-a100"},
       {of(Setting::kTp), "2"},
       {of(Setting::kDp), "8"},
       {of(Setting::kZero), "0"},
       {of(Setting::kDtype), "fp32"}},
  };
}

SimulatedPlan simulated(const Given& given, const std::optional<PlanFile>& file = {}) {
  Arguments arguments = arguments_of(Command::kSimulate, given);
  arguments.set(Opt("--allow-oom"), "");
  Result<SimulatedPlan> answer = simulate_answer(arguments, file);
  const std::string problem = answer.ok() ? "" : to_string(answer.error());
  INFO(problem);
  REQUIRE(answer.ok());
  return std::move(answer).value();
}

PlanFile saved(const SimulatedPlan& answer) { return plan_file_of(answer.named, answer.run.plan); }

std::string report(const SimulatedPlan& answer) {
  return to_text(simulate_report(answer.named, answer.run));
}

// All options that can repeat a value of the plan file.
Given restatements(const PlanFile& file) {
  Given all = {{Opt("--cluster"), file.cluster},
               {Opt("--profile"), file.profile},
               {Opt("--stack"), file.stack},
               {Opt("--model"), file.model.name},
               {Opt("--seq"), std::to_string(file.model.seq)}};
  if (file.node_gbps > 0) all.emplace_back(Opt("--node-gbps"), std::to_string(file.node_gbps));
  std::string nodes;
  for (const std::string& line : file.nodes) nodes += line + ";";
  if (!nodes.empty()) all.emplace_back(Opt("--nodes"), nodes);
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for == nullptr)
      all.emplace_back(opt_of(row.setting), text_of(file.plan, row.setting));
  }
  for (const auto& [part, value] : file.parts) {
    all.emplace_back(opt_of(part), text_of(row_of(part), value));
  }
  return all;
}

}  // namespace

TEST_CASE("a saved plan has the same prediction when it is read, intervals included") {
  for (const Given& given : drawn_plans()) {
    const SimulatedPlan first = simulated(given);
    const std::string text = to_json(saved(first));
    const Result<PlanFile> file = parse_plan(text, "plan.json");
    REQUIRE(file.ok());
    const SimulatedPlan again = simulated({}, *file);
    CHECK(report(again) == report(first));
    CHECK(to_json(saved(again)) == text);
  }
}

TEST_CASE("an option that repeats a saved plan changes nothing") {
  for (const Given& given : drawn_plans()) {
    const SimulatedPlan first = simulated(given);
    const PlanFile file = saved(first);
    const Given every = restatements(file);
    for (const auto& one : every) {
      INFO(row_of(one.first).name << " " << one.second);
      CHECK(report(simulated({one}, file)) == report(first));
    }
    CHECK(report(simulated(every, file)) == report(first));
  }
}

TEST_CASE("a plan on given hosts keeps them with its ranks, and a file of ranks has each once") {
  const Given on_hosts = drawn_plans()[2];
  const SimulatedPlan first = simulated(on_hosts);
  const PlanFile file = saved(first);
  REQUIRE(file.nodes.size() == 4);
  CHECK(file.nodes.front().starts_with("a1 rack=r1 ranks="));
  const std::string hosts = rank_file(first.named, first.run.plan).value();
  CHECK(std::count(hosts.begin(), hosts.end(), '\n') == 16);
  CHECK(rank_file(simulated({}, file).named, file.plan).value() == hosts);
  const auto wider = simulated({{opt_of(Setting::kDp), "2"}}, file);  // another layout
  CHECK(std::ssize(wider.named.scenario.rank_nodes) == 2);
  CHECK_FALSE(rank_file(simulated({{Opt("--cluster"), "dgx-b200"}}, file).named, file.plan).ok());
  const SimulatedPlan moved = simulated({{Opt("--cluster"), "dgx-b200"}}, file);
  CHECK(moved.named.dropped == std::vector<std::string>{"allocation of 4 hosts"});
}

TEST_CASE("a copy of the cluster's file is the same cluster") {
  const test::TemporaryFolder folder;
  const SimulatedPlan first = simulated(drawn_plans().front());
  const PlanFile file = saved(first);
  const Catalogue catalogue = Catalogue::open().value();
  const std::string copy = (folder / "copy.json").string();
  const std::string name = file.cluster + ".json";
  std::filesystem::copy_file(catalogue.directory() / "clusters" / name, copy);
  CHECK(simulated({{Opt("--cluster"), copy}}, file).run.predicted.step == first.run.predicted.step);
}

TEST_CASE("another cluster changes the cluster, its GPUs and its network alone") {
  const SimulatedPlan first = simulated(drawn_plans().front());
  const PlanFile file = saved(first);
  const PlanFile moved = saved(simulated({{Opt("--cluster"), "gb200-nvl72"}}, file));
  PlanFile expected = file;
  expected.cluster = "gb200-nvl72";
  expected.profile = moved.profile;
  expected.node_gbps = 0;
  CHECK(moved.profile != file.profile);
  CHECK(to_json(moved) == to_json(expected));
  const std::vector<std::string> dropped =
      simulated({{Opt("--cluster"), "gb200-nvl72"}}, file).named.dropped;
  CHECK(dropped == std::vector<std::string>{"network of 1600 Gb/s a node"});
}

TEST_CASE("another stack keeps the parts, another model the stages if they still add up") {
  const PlanFile file = saved(simulated(drawn_plans().front()));
  CHECK(saved(simulated({{Opt("--stack"), "nemo"}}, file)).parts == file.parts);
  const SimulatedPlan other = simulated({{Opt("--model"), "mistral-7b"}}, file);
  CHECK(other.run.plan.stage_layers == file.plan.stage_layers);
  CHECK(other.named.scenario.model.seq != file.model.seq);
  CHECK(std::count(other.named.dropped.begin(), other.named.dropped.end(),
                   "sequences of 4096 tokens") == 1);
}

TEST_CASE("a search that starts from a saved plan keeps what the plan fixes and is no worse") {
  for (const Given& given : drawn_plans()) {
    const SimulatedPlan first = simulated(given);
    const PlanFile file = saved(first);
    const Arguments arguments = arguments_of(Command::kPlan, {});
    const NamedScenario named = load_scenario(arguments, file).value();
    SearchSpace space = search_space(arguments, named.scenario, file).value();
    space.oom_risk = 1;  // the plan may exceed the memory
    const SearchResult found = search(named.scenario, space, 1, {}).value();
    REQUIRE(!found.plans.empty());
    const PlannedRun& best = found.plans.front();
    for (const SettingRow& row : setting_rows()) {
      if (!row.fixed_by_plan) continue;
      INFO(row.title);
      CHECK(row.get(best.plan) == row.get(file.plan));
    }
    CHECK(best.predicted.step <= first.run.predicted.step);
    const PlanFile kept = plan_file_of(named, best.plan);
    CHECK(kept.parts == file.parts);
    CHECK(kept.node_gbps == file.node_gbps);
    CHECK(kept.stack_assumed == file.stack_assumed);
  }
}

TEST_CASE("searches from a saved plan also try its values that are otherwise not tried") {
  SimulatedPlan first = simulated({{Opt("--model"), "llama-3-8b"},
                                   {Opt("--cluster"), "dgx-h100"},
                                   {Opt("--stack"), "torchtitan"},
                                   {opt_of(Setting::kTp), "2"},
                                   {opt_of(Setting::kDp), "4"},
                                   {opt_of(Setting::kZero), "2"},
                                   {opt_of(Setting::kRecompute), "ops"},
                                   {opt_of(Setting::kGlobalBatch), "32"}});
  const SearchSpace around = space_around(first.run.plan);
  SearchSpace unasked = around;
  unasked.around.reset();
  const auto best = [&](SearchSpace space) {
    space.asked[Setting::kTp] = {2};
    space.asked[Setting::kZero] = {2};
    space.oom_risk = 1;
    return search(first.named.scenario, space, 1, {}).value().plans.front();
  };
  CHECK(best(around).predicted.step <= first.run.predicted.step);
  CHECK(best(unasked).plan.recompute != Recompute::kOps);
}

TEST_CASE("a question about a saved plan equals the question with all options given") {
  Given given = {{Opt("--model"), "llama-3-8b"},       {Opt("--cluster"), "dgx-b200-node"},
                 {Opt("--stack"), "megatron-core"},    {opt_of(Setting::kTp), "2"},
                 {opt_of(Setting::kDp), "4"},          {opt_of(Setting::kPrecision), "mxfp8"},
                 {opt_of(Setting::kGlobalBatch), "32"}};
  const SimulatedPlan plan_of_file = simulated(given);
  const PlanFile file = saved(plan_of_file);
  const auto asked = [](const Given& options, const std::optional<PlanFile>& plan) {
    Arguments arguments = arguments_of(Command::kExplain, options);
    arguments.set("--json", "");
    arguments.plan = plan;
    return run_explain(arguments, {}).value();
  };
  const std::pair why{Opt("--why-not"), std::string("tp=8")};
  Given spelt = {{Opt("--model"), "llama-3-8b"},
                 {Opt("--cluster"), "dgx-b200-node"},
                 {Opt("--stack"), "megatron-core"},
                 {Opt("--gpus"), "8"},
                 {opt_of(Setting::kGlobalBatch), "32"},
                 {opt_of(Setting::kPrecision), "mxfp8"},
                 why};
  // A saved plan keeps the parts of its software.
  for (const auto& [part, value] : app::held_parts(plan_of_file.named)) {
    spelt.emplace_back(opt_of(part), text_of(row_of(part), value));
  }
  CHECK(to_text(asked({why}, file).document) == to_text(asked(spelt, {}).document));
  // Questions use the plan of the file.
  const JsonValue what_if = asked({{Opt("--what-if"), ""}}, file).document;
  CHECK(to_text(what_if).find("plan_break_evens") != std::string::npos);
}

}  // namespace tpsim::cli
