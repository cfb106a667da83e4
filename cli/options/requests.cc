#include "cli/options/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/options/values.h"
#include "core/scenario/plan_json.h"

namespace tpsim::cli {
namespace {

constexpr Opt kSearchOnly[] = {"--objective",   "--max-memory", "--max-oom", "--exclude",
                               "--uneven-ends", "--threads",    "--why-not"};
constexpr Opt kSingleOnly[] = {opt_of(Setting::kStageLayers), "--count-embedding",
                               "--no-count-embedding"};

// Parses --set, a list of NAME=VALUE separated by commas.
Result<std::map<std::string, std::string>> given_variables(const Arguments& arguments) {
  std::map<std::string, std::string> given;
  if (!arguments.has("--set")) return given;
  for (const OptionValue& value : values_of(arguments, "--set")) {
    TPSIM_TRY(const std::string part, word_of("--set", value));
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return option_error("--set", fmt::format("'{}' is not NAME=VALUE", part),
                          "write NNODES=4,TP=2");
    }
    given[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return given;
}

// Returns the values of --answer. A text may contain commas.
Result<std::vector<std::string>> answers_of(const Arguments& arguments) {
  std::vector<std::string> answers;
  if (!arguments.has("--answer")) return answers;
  const auto* const stated = arguments.values("--answer");
  for (const OptionValue& value :
       stated != nullptr ? *stated : values_in(*arguments["--answer"], '\n')) {
    TPSIM_TRY(const std::string part, word_of("--answer", value));
    answers.push_back(part);
    if (part.find('=') == std::string::npos && !part.ends_with('!')) {
      return option_error(
          "--answer", fmt::format("'{}' is not COMMAND=TEXT", part),
          "write --answer 'nvidia-smi -L=GPU 0', or --answer 'COMMAND!' if it fails");
    }
  }
  return answers;
}

RunOverrides overrides_of(const ScenarioRequest& scenario) {
  return {scenario.cluster, scenario.stack, scenario.profile, scenario.node_gbps};
}

}  // namespace

Result<ExplainRequest> explain_request(const Arguments& arguments,
                                       const std::optional<PlanFile>& file) {
  const bool has_gpus = arguments.has("--gpus");
  const bool asks_why_not = arguments.has("--why-not") && (file || has_gpus);
  ExplainRequest request;
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  if (!asks_why_not && has_gpus) {
    if (file) {
      TPSIM_TRY_STATUS(refuse(arguments, {"--gpus"}, "the plan file states the number of GPUs"));
    }
    TPSIM_TRY_STATUS(refuse(arguments, kSingleOnly, "with --gpus, the search chooses the stages"));
  } else if (!asks_why_not) {
    TPSIM_TRY_STATUS(refuse(arguments, kSearchOnly, "add --gpus: the option applies to a search"));
    TPSIM_TRY(request.settings, single_settings(arguments));
  }
  if (asks_why_not || has_gpus || (file && arguments.has("--what-if"))) {
    TPSIM_TRY(request.search, search_request(arguments));
  }
  TPSIM_TRY(request.why_not, choices_of(arguments, "--why-not"));
  return request;
}

Result<CapturedRequest> captured_request(const Arguments& arguments, const std::string& path) {
  CapturedRequest request{.path = path,
                          .cluster = arguments["--cluster"].value_or(""),
                          .profile = arguments["--profile"].value_or(""),
                          .stack = arguments["--stack"].value_or("")};
  TPSIM_TRY(request.node_gbps, node_gbps_of(arguments));
  return request;
}

Result<std::vector<ScenarioRequest>> compare_requests(const Arguments& arguments) {
  std::vector<ScenarioRequest> requests;
  for (const std::string& path : arguments.words()) {
    Arguments own = arguments;
    own.positional = path;
    TPSIM_TRY(const PlanFile file, read_plan(path));
    TPSIM_TRY(requests.emplace_back(), scenario_request(own, file));
  }
  return requests;
}

Result<LaunchStack> launch_stack_of(const Arguments& arguments, Opt opt) {
  if (arguments.has(opt)) return choice_of(arguments, opt, LaunchStack{});
  return option_error(opt, "the framework is missing",
                      fmt::format("choose from {}", fmt::join(kEnumNames<LaunchStack>, ", ")));
}

Result<ExportRequest> export_request(const Arguments& arguments, const PlanFile& file) {
  ExportRequest request;
  TPSIM_TRY(request.to, launch_stack_of(arguments, "--to"));
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  request.allow_loss = arguments.has("--allow-loss");
  TPSIM_TRY(request.risk, accepted_risk(arguments));
  return request;
}

Result<ImportRequest> import_request(const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return bad_input("no launch file was given", "import",
                     "tpsim import my-script.sh, or the folder that export wrote");
  }
  ImportRequest request{.path = arguments.positional, .more = arguments.more};
  if (arguments.has("--from")) {
    TPSIM_TRY(request.from, launch_stack_of(arguments, "--from"));
  }
  TPSIM_TRY(request.scenario, scenario_request(arguments, std::nullopt));
  request.scenario.origin.clear();  // the launch files are not a plan file
  ImportInputs& inputs = request.inputs;
  TPSIM_TRY(inputs.gpus, integer_of(arguments, "--gpus", 0));
  TPSIM_TRY(inputs.given, given_variables(arguments));
  TPSIM_TRY(inputs.micro_batch, integer_of(arguments, opt_of(Setting::kMicroBatch), 0));
  TPSIM_TRY(inputs.global_batch, integer_of(arguments, opt_of(Setting::kGlobalBatch), 0));
  inputs.assumes_harmless = arguments.has("--assume-harmless");
  inputs.runs_code = arguments.has("--run");
  inputs.trusts_scripts = arguments.has("--trust");
  TPSIM_TRY(inputs.command, integer_of(arguments, "--command", 0));
  TPSIM_TRY(inputs.answers, answers_of(arguments));
  TPSIM_TRY(inputs.checkouts, checkouts_of(arguments));
  return request;
}

Result<std::vector<std::string>> checkouts_of(const Arguments& arguments) {
  std::vector<std::string> folders;
  if (!arguments.has("--checkout")) return folders;
  for (const OptionValue& folder : values_of(arguments, "--checkout")) {
    TPSIM_TRY(folders.emplace_back(), word_of("--checkout", folder));
  }
  return folders;
}

Result<RunsRequest> runs_request(const Arguments& arguments) {
  if (!arguments.has("--runs")) {
    return option_error("--runs", "the table of measured runs is missing",
                        "give a table like data/published_runs/bloom_jean_zay.csv, or a plan.json");
  }
  TPSIM_TRY_STATUS(refuse(
      arguments, {"--steps", "--device"},
      "the option is for runs on this machine; remove it, or give a plan instead of --runs"));
  TPSIM_TRY(const ScenarioRequest scenario, scenario_request(arguments, std::nullopt));
  return RunsRequest{.table = *arguments["--runs"],
                     .row = arguments["--row"].value_or(""),
                     .overrides = overrides_of(scenario)};
}

Result<CalibrateRequest> calibrate_request(const Arguments& arguments) {
  CalibrateRequest request{.measured = arguments.words(),
                           .plan_file = arguments["--plan"].value_or(""),
                           .saves_stack = arguments.has("--save-stack"),
                           .saves_cluster = arguments.has("--save-cluster")};
  TPSIM_TRY(request.scenario, scenario_request(arguments, std::nullopt));
  request.overrides = overrides_of(request.scenario);
  TPSIM_TRY(request.import, import_request(arguments));
  TPSIM_TRY(request.threads, threads_of(arguments));
  return request;
}

}  // namespace tpsim::cli
