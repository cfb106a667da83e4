// The calls of `tpsim call`. Each returns the document that its command prints with --json.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "app/answers/log_answer.h"
#include "app/reports/answer_json.h"
#include "app/reports/report_json.h"
#include "cli/commands/call.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "core/json/json_document.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "generated/tpsim_config.h"

namespace tpsim::cli {
namespace {

using Request = CallRequest;
using Answer = Result<CallAnswer>;

Result<std::optional<PlanFile>> plan_of(const Request& request) {
  if (!request.plan) return std::optional<PlanFile>();
  TPSIM_TRY(PlanFile file, plan_from_json(*request.plan, "plan"));
  return std::optional<PlanFile>(std::move(file));
}

Answer plan_file_answer(const PlanFile& file) {
  return CallAnswer{.document = plan_file_to_json(file), .files = {to_json(file)}};
}

Answer plan(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(PlanRequest asked, plan_request(arguments, file));
  asked.search.progress = asked.front_progress = request.progress;
  TPSIM_TRY(const PlanAnswer one, plan_answer(asked));
  const auto& [named, space, found, drawn, possible] = one;
  if (found.plans.empty()) return nothing_fits(named.scenario, space, found);
  CallAnswer answer{.document = plan_report(named, space, found)};
  for (const PlannedRun& run : found.plans) {
    answer.files.push_back(to_json(plan_file_of(named, run.plan)));
  }
  return answer;
}

Answer simulate_one(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(const SimulateRequest asked, simulate_request(arguments, file));
  TPSIM_TRY(const AcceptedRisk accepted, accepted_risk(arguments));
  TPSIM_TRY(const SimulatedPlan one, simulate_answer(asked));
  TPSIM_TRY_STATUS(check_fit(accepted, one.named.scenario, one.run));
  return CallAnswer{.document = simulate_report(one.named, one.run),
                    .files = {to_json(plan_file_of(one.named, one.run.plan))}};
}

Answer explain_one(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(Explanation answer, explain(arguments, file, Terminal{}));
  return CallAnswer{.document = std::move(answer.document), .files = {to_json(answer.plan)}};
}

Answer campaign(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(WholeRunRequest asked, campaign_request(arguments, file));
  asked.progress = request.progress;
  TPSIM_TRY(const CampaignReport report, campaign_answer(asked));
  return CallAnswer{.document = campaign_json(report)};
}

Answer export_files(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(const ExportRequest asked, export_request(arguments, *file));
  TPSIM_TRY(const ExportAnswer answer, export_answer(asked));
  if (answer.refused) return *answer.refused;
  return CallAnswer{.document = export_json(answer)};
}

Answer import_plan(const Arguments& arguments, const Request&) {
  TPSIM_TRY(const ImportRequest asked, import_request(arguments));
  TPSIM_TRY(const ImportAnswer answer, import_answer(asked));
  return plan_file_answer(answer.file);
}

Answer check_log(const Arguments& arguments, const Request& request) {
  if (arguments.positional == "-") {
    return bad_input("'-' is standard input, which carries the requests", "check_log",
                     "write the log to a file");
  }
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  CheckLogRequest asked;
  TPSIM_TRY(asked.scenario, scenario_request(arguments, file));
  TPSIM_TRY(asked.log, open_log(arguments.positional));
  TPSIM_TRY(const CheckedLog checked, check_log_answer(asked));
  return CallAnswer{.document = check_log_json(checked)};
}

Answer validate(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(RunsRequest asked, runs_request(arguments));
  asked.progress = request.progress;
  TPSIM_TRY(const std::vector<RunOutcome> outcomes, validate_answer(asked));
  return CallAnswer{.document = validate_json(outcomes)};
}

Answer read_saved_plan(const Arguments&, const Request& request) {
  TPSIM_TRY(const PlanFile file, read_plan(*request.path));
  return plan_file_answer(file);
}

template <CatalogueKind kKind>
Answer names(const Arguments&, const Request&) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return CallAnswer{.document = json_array(catalogue.list(kKind))};
}

Answer version(const Arguments&, const Request&) {
  return CallAnswer{.document = std::string(kVersion)};
}

// Functions of Python that start the command itself. These commands write files, train, or read
// several files.
constexpr std::array<std::pair<std::string_view, Command>, 4> kStartedByPython = {
    {{"scaling", Command::kPlan},
     {"compare", Command::kCompare},
     {"calibrate", Command::kCalibrate},
     {"run", Command::kRun}}};

JsonValue json_of(const std::vector<CallKeyword>& keywords) {
  return json_array(keywords, [](const CallKeyword& one) {
    return json_object({{"name", one.name}, {"value", one.value}, {"takes_list", one.takes_list}});
  });
}

Answer options(const Arguments&, const Request&) {
  JsonValue document = JsonValue::Object{};
  for (const CallRow& row : call_rows()) {
    if (row.command) document.set(std::string(row.name), json_of(call_keywords(*row.command)));
  }
  for (const auto& [name, command] : kStartedByPython) {
    document.set(std::string(name), json_of(command_keywords(command)));
  }
  return CallAnswer{.document = std::move(document)};
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
    all.push_back({row.opt, keyword_of(row), row.value, row.many});
  }
  return all;
}

}  // namespace

const std::vector<CallRow>& call_rows() {
  using enum CallRow::Input;
  static const std::vector<CallRow> rows = {
      {"plan", Command::kPlan, kMayTake, kNone, plan},
      {"simulate", Command::kSimulate, kMayTake, kNone, simulate_one},
      {"explain", Command::kExplain, kMayTake, kNone, explain_one},
      {"campaign", Command::kCampaign, kMayTake, kNone, campaign},
      {"export", Command::kExport, kNeeds, kNone, export_files},
      {"import_plan", Command::kImport, kNone, kNeeds, import_plan},
      {"check_log", Command::kCheckLog, kNeeds, kNeeds, check_log},
      {"validate", Command::kValidate, kNone, kNone, validate},
      {"read_plan", std::nullopt, kNone, kNeeds, read_saved_plan},
      {"models", std::nullopt, kNone, kNone, names<CatalogueKind::kModels>},
      {"clusters", std::nullopt, kNone, kNone, names<CatalogueKind::kClusters>},
      {"profiles", std::nullopt, kNone, kNone, names<CatalogueKind::kProfiles>},
      {"stacks", std::nullopt, kNone, kNone, names<CatalogueKind::kStacks>},
      {"options", std::nullopt, kNone, kNone, options},
      {"version", std::nullopt, kNone, kNone, version},
  };
  return rows;
}

std::vector<CallKeyword> call_keywords(Command command) {
  return keywords_without(
      {"--json", "--markdown", "--save", "--trace", "-o", "--plot", "--quiet", "--color",
       "--scaling", "--max-gap", "--steps", "--device", "--plan", "--save-snapshot"},
      command);
}

std::vector<CallKeyword> command_keywords(Command command) {
  return keywords_without({"--json", "--markdown", "--quiet", "--color"}, command);
}

}  // namespace tpsim::cli
