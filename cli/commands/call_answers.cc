// The calls of `tpsim call`. Most return the document that a command prints with --json.
#include <algorithm>
#include <array>
#include <utility>

#include "app/reports/brief.h"
#include "cli/commands/call.h"
#include "cli/commands/commands.h"
#include "core/json/json_document.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "generated/tpsim_config.h"

namespace tpsim::cli {
namespace {

Result<Answer> read_saved_plan(const Arguments& arguments, const Terminal&) {
  TPSIM_TRY(const PlanFile file, read_plan(arguments.positional));
  return Answer{.document = plan_file_to_json(file), .plans = {file}};
}

Result<Answer> brief(const Arguments& arguments, const Terminal&) {
  TPSIM_TRY(const JsonValue report, parse_json(arguments.positional, "report"));
  const JsonValue* version = report.find("version");
  if (version == nullptr || version->as<std::string>() == nullptr) {
    return bad_input("has no version, so it is not a report of tpsim", "report");
  }
  return Answer{.document = brief_report(report)};
}

template <CatalogueKind kKind>
Result<Answer> names(const Arguments&, const Terminal&) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return Answer{.document = json_array(catalogue.list(kKind))};
}

Result<Answer> version(const Arguments&, const Terminal&) {
  return Answer{.document = std::string(kVersion)};
}

// Functions of Python that start the command itself. These commands write files, train, or read
// several files.
constexpr std::array<std::pair<std::string_view, Command>, 3> kStartedByPython = {
    {{"scaling", Command::kPlan}, {"calibrate", Command::kCalibrate}, {"run", Command::kRun}}};

JsonValue json_of(const std::vector<CallKeyword>& keywords) {
  return json_array(keywords, [](const CallKeyword& one) {
    return json_object({{"name", one.name}, {"value", one.value}, {"takes_list", one.takes_list}});
  });
}

Result<Answer> options(const Arguments&, const Terminal&) {
  JsonValue document = JsonValue::Object{};
  for (const CallRow& row : call_rows()) {
    if (row.command) document.set(std::string(row.name), json_of(call_keywords(*row.command)));
  }
  for (const auto& [name, command] : kStartedByPython) {
    document.set(std::string(name), json_of(command_keywords(command)));
  }
  return Answer{.document = std::move(document)};
}

std::string keyword_of(const OptionRow& row) {
  std::string name = row.name.substr(row.name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<CallKeyword> keywords_without(std::initializer_list<Opt> left_out, Command command) {
  std::vector<CallKeyword> all;
  for (const OptionRow& row : options_of(command)) {
    if (std::find(left_out.begin(), left_out.end(), row.opt) != left_out.end()) continue;
    all.push_back({row.opt, keyword_of(row), row.value, row.many, row.help, row.group});
  }
  return all;
}

}  // namespace

const std::vector<CallRow>& call_rows() {
  using enum CallRow::Input;
  static const std::vector<CallRow> rows = {
      {"plan", Command::kPlan, kMayTake, kNone, run_plan},
      {"simulate", Command::kSimulate, kMayTake, kNone, run_simulate},
      {"explain", Command::kExplain, kMayTake, kNone, run_explain},
      {"campaign", Command::kCampaign, kMayTake, kNone, run_campaign},
      {"export", Command::kExport, kNeeds, kNone, run_export},
      {"import_plan", Command::kImport, kNone, kNeedsSome, run_import},
      {"check_log", Command::kCheckLog, kNeeds, kNeeds, run_check_log},
      {"validate", Command::kValidate, kNone, kNone, run_validate},
      {"compare", Command::kCompare, kNone, kNeedsSome, run_compare},
      {"read_plan", std::nullopt, kNone, kNeeds, read_saved_plan},
      {"brief", std::nullopt, kNone, kNone, brief, kNeeds},
      {"models", std::nullopt, kNone, kNone, names<CatalogueKind::kModels>},
      {"clusters", std::nullopt, kNone, kNone, names<CatalogueKind::kClusters>},
      {"profiles", std::nullopt, kNone, kNone, names<CatalogueKind::kProfiles>},
      {"stacks", std::nullopt, kNone, kNone, names<CatalogueKind::kStacks>},
      {"options", std::nullopt, kNone, kNone, options},
      {"version", std::nullopt, kNone, kNone, version},
  };
  return rows;
}

const CallRow* find_call(std::string_view name) {
  for (const CallRow& row : call_rows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<CallKeyword> call_keywords(Command command) {
  return keywords_without(
      {"--json", "--brief", "--markdown", "--save", "--trace", "-o", "--plot", "--quiet", "--color",
       "--scaling", "--max-gap", "--steps", "--device", "--plan", "--save-snapshot"},
      command);
}

std::vector<CallKeyword> command_keywords(Command command) {
  return keywords_without({"--json", "--brief", "--markdown", "--quiet", "--color"}, command);
}

}  // namespace tpsim::cli
