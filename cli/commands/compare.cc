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
#include "app/reports/captured_json.h"
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

std::string column_name(const std::string& file) {
  return printable(std::filesystem::path(file).stem().string());
}

void write_lines(TextReport& out, const std::vector<std::string>& names,
                 const std::vector<PlanDifference>& lines) {
  std::vector<Column> columns = {{"", Align::kLeft}};
  for (const std::string& name : names) columns.push_back({name});
  Table table(std::move(columns));
  for (const PlanDifference& line : lines) {
    std::vector<Cell> row = {line.name};
    for (const std::string& value : line.values) row.emplace_back(printable(value));
    table.add_row(std::move(row));
  }
  out.table(table);
}

void write_table(TextReport& out, const std::vector<ComparedPlan>& all,
                 const std::vector<PlanDifference>& lines) {
  std::vector<std::string> names;
  for (const ComparedPlan& one : all) names.push_back(column_name(one.file));
  write_lines(out, names, lines);
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

// Lines of one kind of op each, in the order of the first step that has the kind.
std::vector<PlanDifference> captured_times(const std::vector<CapturedAnswer>& all,
                                           std::vector<CapturedTime> CapturedPrediction::*rows) {
  std::vector<PlanDifference> lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const CapturedTime& row : all[i].predicted.*rows) {
      auto line = std::find_if(lines.begin(), lines.end(),
                               [&](const PlanDifference& one) { return one.name == row.what; });
      if (line == lines.end()) {
        line = lines.insert(line, {row.what, std::vector<std::string>(all.size(), "-")});
      }
      line->values[i] = fmt::format("{:.4f} ({})", row.time.value(), row.count);
    }
  }
  return lines;
}

std::vector<PlanDifference> captured_results(const std::vector<CapturedAnswer>& all) {
  std::vector<PlanDifference> lines;
  const auto add = [&](const char* name, auto value) {
    PlanDifference& line = lines.emplace_back(PlanDifference{name, {}});
    for (const CapturedAnswer& one : all) line.values.push_back(value(one, one.predicted));
  };
  using Answer = CapturedAnswer;
  using Step = CapturedPrediction;
  add("cluster", [](const Answer& one, const Step&) { return one.machine.cluster.name; });
  add("GPUs", [](const Answer& one, const Step&) { return count_text(one.step.world); });
  add("step, s",
      [](const Answer&, const Step& p) { return fmt::format("{:.4g}", p.step.value()); });
  add("90 % interval, s", [](const Answer&, const Step& p) {
    return fmt::format("{:.4g} to {:.4g}", p.step_low.value(), p.step_high.value());
  });
  add("of ops, s",
      [](const Answer&, const Step& p) { return fmt::format("{:.4f}", p.busy.value()); });
  add("waiting for collectives, s",
      [](const Answer&, const Step& p) { return fmt::format("{:.4f}", p.exposed.value()); });
  add("waiting for the host, s",
      [](const Answer&, const Step& p) { return fmt::format("{:.4f}", p.host_wait.value()); });
  add("memory, GiB", [](const Answer&, const Step& p) { return gib_text(p.peak); });
  add("p(OOM)", [](const Answer&, const Step& p) { return chance_text(p.p_oom); });
  return lines;
}

// Compares captured steps, each on each of the clusters.
Result<Answer> compare_captured(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(refuse_others(
      arguments,
      {"--cluster", "--profile", "--stack", "--node-gbps", "--json", "--quiet", "--color"},
      "the captured program states it"));
  std::vector<CapturedAnswer> all;
  std::vector<std::string> names;
  const std::string stated = arguments["--cluster"].value_or("");
  for (const std::string& path : arguments.words()) {
    TPSIM_TRY(const CapturedStep step, read_captured_step(path));
    std::string_view clusters = stated;
    do {
      TPSIM_TRY(CapturedRequest request, captured_request(arguments, path));
      request.cluster = cut_off(clusters, ",");
      TPSIM_TRY(all.emplace_back(), captured_answer(request, step));
      names.push_back(column_name(path));
    } while (!clusters.empty());
  }
  return answered(
      arguments, terminal,
      [&] {
        return json_object({{"version", "tpsim-captured-comparison-report/1"},
                            {"steps", json_array(all, captured_report)}});
      },
      [&](TextReport& out) {
        out.heading("PREDICTED");
        write_lines(out, names, captured_results(all));
        out.heading("OPS", "seconds of a step (launches)");
        write_lines(out, names, captured_times(all, &CapturedPrediction::ops));
        out.heading("COLLECTIVES", "also where they overlap");
        write_lines(out, names, captured_times(all, &CapturedPrediction::collectives));
      });
}

}  // namespace

Result<Answer> run_compare(const Arguments& arguments, const Terminal& terminal) {
  if (!arguments.positional.empty() && is_captured_step(arguments.positional)) {
    return compare_captured(arguments, terminal);
  }
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
