#include "cli/options/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "core/base/standard_streams.h"
#include "core/scenario/plan_json.h"

namespace tpsim::cli {
namespace {

constexpr std::int64_t kMostUneven = 8;
constexpr std::int64_t kMostThreads = 256;

Result<std::optional<double>> dropout_of(const Arguments& arguments) {
  if (!arguments.has("--attention-dropout")) return std::optional<double>();
  const std::string& text = *arguments["--attention-dropout"];
  const auto dropout = number_of(arguments, "--attention-dropout");
  if (!dropout || !(*dropout >= 0 && *dropout < 1)) {
    return option_error("--attention-dropout",
                        fmt::format("'{}' is not a probability below 1", text),
                        "write 0, or a share such as 0.1");
  }
  return dropout;
}

// Returns the values of a part that the option states. Modules of a set are one text.
std::vector<OptionValue> part_choices(const Arguments& arguments, const PartRow& row) {
  const Opt opt = opt_of(row.part);
  const bool searches = arguments.command == Command::kPlan;
  if (row.kind == FieldKind::kSet && searches) return values_in(*arguments[opt], '/');
  const bool is_list = row.kind != FieldKind::kSet && arguments.values(opt) != nullptr;
  return searches || is_list ? values_of(arguments, opt)
                             : std::vector<OptionValue>{*arguments[opt]};
}

// Reads the options of software parts. `plan` accepts several values of a part, separated by
// commas, and several sets, separated by slashes. --expert-load also accepts a file of token counts
// per expert.
Status read_parts(const Arguments& arguments, ScenarioRequest& request) {
  for (const PartRow& row : part_rows()) {
    const Opt opt = opt_of(row.part);
    if (!arguments.has(opt)) continue;
    for (const OptionValue& one : part_choices(arguments, row)) {
      const auto* text = std::get_if<std::string>(&one);
      std::error_code ignored;
      const bool is_file = row.part == StackPart::kExpertLoad && text != nullptr &&
                           !parse_value(row, *text).ok() && std::filesystem::exists(*text, ignored);
      if (is_file) request.expert_counts = *text;
      TPSIM_TRY(const std::int64_t value,
                is_file ? Result<std::int64_t>(kCountedLoad) : part_value(row, one));
      request.parts[row.part].push_back(value);
    }
  }
  return Ok{};
}

bool predicts(Command command) {
  return command == Command::kPlan || command == Command::kSimulate ||
         command == Command::kExplain || command == Command::kCampaign;
}

void say_changed_contents(const Arguments& arguments, const ScenarioRequest& request) {
  if (!request.file || arguments.program.empty() || arguments.has("--quiet")) return;
  const Result<Catalogue> catalogue = Catalogue::open();
  if (!catalogue.ok()) return;  // load_scenario() reports the error
  for (const std::string& entry : changed_contents(request, *catalogue)) {
    say(fmt::format("tpsim: the {} has changed since the plan was saved\n", printable(entry)));
  }
}

Result<StatedSettings> stated_settings(const Arguments& arguments, bool is_single) {
  StatedSettings stated;
  for (const SettingRow& row : setting_rows()) {
    const Opt opt = opt_of(row.setting);
    if (row.counts_for != nullptr || !arguments.has(opt)) continue;
    if (row.is_list()) {
      TPSIM_TRY(stated.values[row.setting], integers_of(arguments, opt, {0, 1 << 20}));
      continue;
    }
    TPSIM_TRY(SettingChoices choices, setting_choices(arguments, row.setting));
    if (is_single || row.role == SettingRole::kGiven) {
      TPSIM_TRY_STATUS(
          check_single(arguments, opt, std::max(choices.values.size(), choices.counts.size())));
    }
    for (const std::int64_t value : choices.values) {
      const SettingRow* count = count_setting_of({row.setting, value});
      if (count != nullptr) stated.values[count->setting] = choices.counts;
    }
    stated.values[row.setting] = std::move(choices.values);
  }
  return stated;
}

}  // namespace

Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments) {
  if (arguments.plan || arguments.positional.empty()) return arguments.plan;
  TPSIM_TRY(PlanFile file, read_plan(arguments.positional));
  return std::optional<PlanFile>(std::move(file));
}

Result<ScenarioRequest> scenario_request(const Arguments& arguments,
                                         const std::optional<PlanFile>& file) {
  ScenarioRequest request{.file = file, .origin = arguments.positional};
  request.model = arguments["--model"].value_or("");
  request.cluster = arguments["--cluster"].value_or("");
  request.profile = arguments["--profile"].value_or("");
  request.stack = arguments["--stack"].value_or("");
  if (arguments.has("--seq")) {
    TPSIM_TRY(request.seq, integer_of(arguments, "--seq", 0));
  }
  TPSIM_TRY(request.attention_dropout, dropout_of(arguments));
  TPSIM_TRY(request.node_gbps, node_gbps_of(arguments));
  request.nodes = arguments["--nodes"].value_or("");
  TPSIM_TRY_STATUS(read_parts(arguments, request));
  request.ignore_stack_limits = arguments.has("--ignore-stack-limits");
  request.no_limits = arguments.has("--no-limits");
  request.predicts = predicts(arguments.command);
  say_changed_contents(arguments, request);
  return request;
}

Result<StatedSettings> single_settings(const Arguments& arguments) {
  TPSIM_TRY(StatedSettings stated, stated_settings(arguments, true));
  const bool counts = arguments.has("--count-embedding");
  if (counts && arguments.has("--no-count-embedding")) {
    return option_error("--count-embedding", "contradicts --no-count-embedding",
                        "give only one of them");
  }
  if (counts || arguments.has("--no-count-embedding")) stated.count_embedding = counts;
  return stated;
}

Result<SearchRequest> search_request(const Arguments& arguments) {
  TPSIM_TRY(const std::int64_t gpus, integer_of(arguments, "--gpus", 0));
  TPSIM_TRY(SearchRequest request, sizes_request(arguments));
  request.gpus = gpus;
  return request;
}

Result<SearchRequest> sizes_request(const Arguments& arguments) {
  SearchRequest request;
  TPSIM_TRY(request.settings, stated_settings(arguments, false));
  TPSIM_TRY(request.excluded, settings_of(arguments, "--exclude"));
  if (arguments.has("--uneven-ends")) {
    TPSIM_TRY(request.uneven_ends, integer_of(arguments, "--uneven-ends", 0, {0, kMostUneven}));
  }
  TPSIM_TRY(request.objective, choice_of(arguments, "--objective", request.objective));
  TPSIM_TRY(request.memory_limit, bytes_of(arguments, "--max-memory"));
  TPSIM_TRY(request.oom_risk, probability_of(arguments, "--max-oom"));
  TPSIM_TRY(request.threads, threads_of(arguments));
  return request;
}

Result<AcceptedRisk> accepted_risk(const Arguments& arguments) {
  AcceptedRisk accepted;
  TPSIM_TRY(accepted.max_oom, probability_of(arguments, "--max-oom"));
  accepted.allow_oom = arguments.has("--allow-oom");
  return accepted;
}

namespace {

// Adds "tp=8", or a part of the software such as "shard-group=node".
Status add_choice(std::string_view text, Choices& choices) {
  const std::string_view name = text.substr(0, text.find('='));
  for (const PartRow& row : part_rows()) {
    const bool is_meant = name == row.key || name == option_of(row.part).substr(2);
    if (!is_meant || name.size() == text.size()) continue;
    TPSIM_TRY(choices.parts[row.part], parse_value(row, text.substr(name.size() + 1)));
    return Ok{};
  }
  TPSIM_TRY(const std::vector<SettingValue> values, parse_settings(text));
  choices.settings.insert(choices.settings.end(), values.begin(), values.end());
  return Ok{};
}

}  // namespace

Result<Choices> choices_of(const Arguments& arguments, Opt opt) {
  Choices choices;
  if (!arguments.has(opt)) return choices;
  for (const OptionValue& one : values_of(arguments, opt)) {
    TPSIM_TRY(const std::string list, word_of(opt, one));
    for (std::size_t at = 0, comma = 0; comma != std::string::npos; at = comma + 1) {
      comma = list.find(',', at);
      const Status added = add_choice(std::string_view(list).substr(at, comma - at), choices);
      if (!added.ok()) return option_error(opt, added.error().message, added.error().hint);
    }
  }
  return choices;
}

Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt) {
  TPSIM_TRY(Choices choices, choices_of(arguments, opt));
  if (choices.parts.empty()) return std::move(choices.settings);
  return option_error(opt, fmt::format("{} is a part of the software", to_string(choices.parts)),
                      "give the values to search with the option of the part");
}

namespace {
std::atomic<int> usual_threads = 0;  // 0: one for each core
}  // namespace

void set_usual_threads(int threads) { usual_threads = threads; }

Result<int> threads_of(const Arguments& arguments) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t usual = usual_threads > 0 ? usual_threads.load() : cores;
  TPSIM_TRY(const std::int64_t threads,
            integer_of(arguments, "--threads", usual, {1, kMostThreads}));
  return static_cast<int>(threads);
}

Status refuse_others(const Arguments& arguments, std::initializer_list<Opt> meant,
                     const char* why) {
  for (const OptionRow& option : option_rows()) {
    const bool is_meant = std::find(meant.begin(), meant.end(), option.opt) != meant.end();
    if (!is_meant) TPSIM_TRY_STATUS(refuse(arguments, {option.opt}, why));
  }
  return Ok{};
}

}  // namespace tpsim::cli
