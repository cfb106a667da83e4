// tpsim compare: prints a table with one column per plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "app/answers/compare_answer.h"
#include "app/reports/answer_json.h"
#include "app/scenario/fit.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "core/base/files.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "gui/draw/comparison_picture.h"

namespace tpsim::cli {
namespace {

using Results = std::vector<std::pair<const char*, std::string>>;
Results results_of(const ComparedPlan& one, const CompareAnswer& answer) {
  const Prediction& p = one.run.predicted;
  Results results = {
      {"GPUs", count_text(gpu_count(one.run.plan))},
      {"step, s", fmt::format("{:.4g}", p.step.value())},
      {"90 % interval, s",
       fmt::format("{:.4g} to {:.4g}", p.step_low.value(), p.step_high.value())},
      {"tokens/s a GPU", count_text(std::llround(one.tokens_per_s_per_gpu()))},
      {"MFU", percent_text(p.mfu)},
      {"memory, GiB", gib_text(p.peak)},
      {"p(OOM)", chance_text(p.p_oom)},
      {"fits in memory", fits_in_memory(p) ? "yes" : "NO"},
      {"GPU-hours a billion tokens", fmt::format("{:.1f}", gpu_hours_per_billion_tokens(one.run))},
  };
  if (!answer.shares_errors) return results;
  const bool is_first = &one == &answer.plans.front();
  results.emplace_back(
      "faster than the first",
      is_first ? "-"
               : fmt::format("{:.0f} % sure{}", one.faster * 100, one.is_tie ? ", a tie" : ""));
  return results;
}

std::vector<PlanDifference> results(const CompareAnswer& answer) {
  std::vector<PlanDifference> lines;
  for (const ComparedPlan& one : answer.plans) {
    const Results own = results_of(one, answer);
    lines.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      lines[i].name = own[i].first;
      lines[i].values.push_back(own[i].second);
    }
  }
  return lines;
}

std::vector<PlanDifference> terms(const std::vector<ComparedPlan>& all) {
  std::vector<PlanDifference> lines;
  for (const StepTerm term : kStepTerms) {
    const auto time = [&](const ComparedPlan& one) {
      return time_of(one.run.predicted, term).value();
    };
    const bool any = std::any_of(all.begin(), all.end(),
                                 [&](const ComparedPlan& one) { return time(one) >= 5e-5; });
    if (!any) continue;
    PlanDifference& line = lines.emplace_back(PlanDifference{plain(name_of(term)), {}});
    for (const ComparedPlan& one : all) line.values.push_back(fmt::format("{:.4f}", time(one)));
  }
  return lines;
}

void write_table(TextReport& out, const std::vector<ComparedPlan>& all,
                 const std::vector<PlanDifference>& lines) {
  std::vector<Column> columns = {{"", Align::kLeft}};
  for (const ComparedPlan& one : all) {
    columns.push_back({printable(std::filesystem::path(one.file).stem().string())});
  }
  Table table(std::move(columns));
  for (const PlanDifference& line : lines) {
    std::vector<Cell> row = {line.name};
    for (const std::string& value : line.values) row.emplace_back(printable(value));
    table.add_row(std::move(row));
  }
  out.table(table);
}

void write_comparison(TextReport& out, const CompareAnswer& answer) {
  const std::vector<ComparedPlan>& all = answer.plans;
  out.heading("PREDICTED");
  write_table(out, all, results(answer));
  for (const ComparedPlan& one : all) {
    const Prediction& predicted = one.run.predicted;
    if (fits_in_memory(predicted)) continue;
    out.prose(fmt::format("{} does not fit: it {}", printable(one.file),
                          misfit_text(predicted, kRefusedChance)));
  }
  out.heading("WHAT DIFFERS");
  if (answer.differences.empty()) {
    out.line("  nothing: the plans are equal");
  } else {
    write_table(out, all, answer.differences);
  }
  out.heading("TERMS", "seconds of a step");
  write_table(out, all, terms(all));
}

Status draw(const std::string& path, const std::vector<ComparedPlan>& all) {
  std::vector<gui::ComparedPlan> plans;
  for (const ComparedPlan& one : all) {
    plans.push_back({std::filesystem::path(one.file).stem().string(), one.run.predicted});
  }
  return write_file_atomically(path, gui::svg_text(gui::comparison_picture(plans)));
}

}  // namespace

Result<Answer> run_compare(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(check_plot(arguments));
  TPSIM_TRY(const AcceptedRisk accepted, accepted_risk(arguments));
  TPSIM_TRY(const std::vector<ScenarioRequest> requests, compare_requests(arguments));
  TPSIM_TRY(const CompareAnswer compared, compare_answer(requests));
  Answer answer = answered(
      arguments, terminal, [&] { return compare_json(compared); },
      [&](TextReport& out) { write_comparison(out, compared); });
  if (arguments.has("--plot")) answer.outcome = draw(*arguments["--plot"], compared.plans);
  for (const ComparedPlan& one : compared.plans) {
    if (!answer.outcome) break;
    answer.outcome = check_stated_risk(accepted, one.file, one.run.predicted);
  }
  return answer;
}

}  // namespace tpsim::cli
