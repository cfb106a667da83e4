// The calls of `tpsim call`. Each returns the document that its command prints with --json.
#include <algorithm>
#include <array>
#include <utility>

#include "cli/commands/call.h"
#include "cli/options/answers.h"
#include "cli/options/assumed.h"
#include "cli/options/fit.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/campaign_view.h"
#include "cli/views/report_json.h"
#include "core/json/json_document.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "generated/tpsim_config.h"
#include "plans/search/search.h"

namespace tpsim::cli {
namespace {

using Request = CallRequest;
using Answer = Result<CallAnswer>;

Result<std::optional<PlanFile>> plan_of(const Request& request) {
  if (!request.plan) return std::optional<PlanFile>();
  TPSIM_TRY(PlanFile file, parse_plan(*request.plan, "plan"));
  return std::optional<PlanFile>(std::move(file));
}

Answer plan_file_answer(const PlanFile& file) {
  std::string text = to_json(file);
  TPSIM_TRY(JsonValue document, parse_json(text, "plan"));
  return CallAnswer{.document = std::move(document), .files = {std::move(text)}};
}

Answer plan(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::int64_t top, integer_of(arguments, Opt::kTop, 10, {1, 10'000}));
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(NamedScenario named, load_scenario(arguments, file));
  TPSIM_TRY(const SearchSpace space, search_space(arguments, named.scenario, file));
  TPSIM_TRY(const int threads, threads_of(arguments));
  TPSIM_TRY(SearchResult found,
            arguments.has(Opt::kPareto)
                ? pareto_front(named.scenario, space, request.progress, threads)
                : search(named.scenario, space, static_cast<int>(top), request.progress, threads));
  adopt_parts(found.tried, named);
  TPSIM_TRY_STATUS(widen_intervals(named, found.plans, threads));
  if (found.plans.empty()) return nothing_fits(named.scenario, space, found);
  CallAnswer answer{.document = plan_report(named, space, found)};
  for (const PlannedRun& run : found.plans) {
    answer.files.push_back(to_json(plan_file_of(named, run.plan)));
  }
  return answer;
}

Answer simulate_one(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(const SimulatedPlan one, simulate_answer(arguments, file));
  TPSIM_TRY_STATUS(check_fit(arguments, one.named.scenario, one.run));
  return CallAnswer{.document = simulate_report(one.named, one.run),
                    .files = {to_json(plan_file_of(one.named, one.run.plan))}};
}

Answer explain(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(Explanation answer, explain_answer(arguments, file, Terminal{}));
  return CallAnswer{.document = std::move(answer.document), .files = {to_json(answer.plan)}};
}

Answer campaign(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(const CampaignReport report, campaign_answer(arguments, file, request.progress));
  return CallAnswer{.document = campaign_json(report)};
}

Answer export_files(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(const ExportAnswer answer, export_answer(arguments, *file));
  if (answer.refused) return *answer.refused;
  return CallAnswer{.document = export_json(answer)};
}

Answer import_plan(const Arguments& arguments, const Request&) {
  TPSIM_TRY(const ImportAnswer answer, import_answer(arguments));
  return plan_file_answer(answer.file);
}

Answer check_log(const Arguments& arguments, const Request& request) {
  if (arguments.positional == "-") {
    return bad_input("'-' is standard input, which carries the requests", "check_log",
                     "write the log to a file");
  }
  TPSIM_TRY(const std::optional<PlanFile> file, plan_of(request));
  TPSIM_TRY(const CheckedLog checked, check_log_answer(arguments, *file));
  return CallAnswer{.document = check_log_json(checked)};
}

Answer validate(const Arguments& arguments, const Request& request) {
  TPSIM_TRY(const std::vector<RunOutcome> outcomes, validate_answer(arguments, request.progress));
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

Answer options(const Arguments&, const Request&) {
  JsonValue document = JsonValue::Object{};
  for (const CallRow& row : call_rows()) {
    if (!row.command) continue;
    document.set(std::string(row.name),
                 json_array(call_keywords(*row.command), [](const auto& one) {
                   return json_object(
                       {{"name", one.name}, {"value", one.value}, {"takes_list", one.takes_list}});
                 }));
  }
  return CallAnswer{.document = std::move(document)};
}

std::string keyword_of(const OptionRow& row) {
  std::string name = row.name.substr(row.name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

const std::vector<CallRow>& call_rows() {
  using enum CallRow::Input;
  static const std::vector<CallRow> rows = {
      {"plan", Command::kPlan, kMayTake, kNone, plan},
      {"simulate", Command::kSimulate, kMayTake, kNone, simulate_one},
      {"explain", Command::kExplain, kMayTake, kNone, explain},
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
  constexpr std::array kNotTaken = {Opt::kJson,         Opt::kMarkdown, Opt::kSave,  Opt::kTrace,
                                    Opt::kOutputFolder, Opt::kPlot,     Opt::kQuiet, Opt::kColor,
                                    Opt::kScaling,      Opt::kMaxGap,   Opt::kSteps, Opt::kDevice,
                                    Opt::kPlanFile};
  std::vector<CallKeyword> all;
  for (const OptionRow& row : option_rows()) {
    const bool left_out = std::find(kNotTaken.begin(), kNotTaken.end(), row.opt) != kNotTaken.end();
    if (left_out || !takes(command, row)) continue;
    all.push_back({.opt = row.opt,
                   .name = keyword_of(row),
                   .value = row.value,
                   .takes_list = row.many && command != Command::kSimulate});
  }
  return all;
}

}  // namespace tpsim::cli
