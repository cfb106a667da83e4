// tpsim compare: prints a table with one column per plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

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

template <class Value>
PlanDifference line_of(std::string name, const std::vector<ComparedPlan>& all, Value value) {
  PlanDifference line{std::move(name), {}};
  for (const ComparedPlan& one : all) line.values.push_back(value(one));
  return line;
}

std::vector<PlanDifference> results(const CompareAnswer& answer) {
  const std::vector<ComparedPlan>& all = answer.plans;
  const auto predicted = [&](std::string name, auto value) {
    return line_of(std::move(name), all,
                   [&](const ComparedPlan& one) { return value(one.run.predicted); });
  };
  std::vector<PlanDifference> lines = {
      line_of("GPUs", all,
              [](const ComparedPlan& one) { return count_text(gpu_count(one.run.plan)); }),
      predicted("step, s",
                [](const Prediction& p) { return fmt::format("{:.4g}", p.step.value()); }),
      predicted("90 % interval, s",
                [](const Prediction& p) {
                  return fmt::format("{:.4g} to {:.4g}", p.step_low.value(), p.step_high.value());
                }),
      line_of("tokens/s a GPU", all,
              [](const ComparedPlan& one) {
                return count_text(std::llround(one.tokens_per_s_per_gpu()));
              }),
      predicted("MFU", [](const Prediction& p) { return percent_text(p.mfu); }),
      predicted("memory, GiB", [](const Prediction& p) { return gib_text(p.peak); }),
      predicted("p(OOM)", [](const Prediction& p) { return chance_text(p.p_oom); }),
      predicted("fits in memory",
                [](const Prediction& p) { return std::string(fits_in_memory(p) ? "yes" : "NO"); }),
      line_of("GPU-hours a billion tokens", all,
              [](const ComparedPlan& one) {
                return fmt::format("{:.1f}", one.gpu_hours_per_billion_tokens());
              }),
  };
  if (answer.shares_errors) {
    lines.push_back(line_of("faster than the first", all, [&](const ComparedPlan& one) {
      if (&one == &all.front()) return std::string("-");
      return fmt::format("{:.0f} % sure{}", one.faster * 100, one.is_tie ? ", a tie" : "");
    }));
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
    lines.push_back(line_of(plain(name_of(term)), all, [&](const ComparedPlan& one) {
      return fmt::format("{:.4f}", time(one));
    }));
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
