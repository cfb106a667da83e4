// tpsim validate --runs: predicts published runs and prints the errors of the predictions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/answers/run_answers.h"
#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/times_view.h"
#include "core/base/numbers.h"
#include "core/json/json_document.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kWorstShown = 8;

std::string time_figures(const ValidationSummary& s) {
  if (s.n == 0) return "no row has a measured step time\n";
  std::string text = fmt::format(
      "step time: {} {}, mean error {:.2f} %, median {:.2f} %, P95 {:.1f} %, max {:.1f} %, bias "
      "{:+.2f} %\n",
      s.n, s.n == 1 ? "row" : "rows", 100 * s.mape, 100 * s.median_ape, 100 * s.p95_ape,
      100 * s.max_ape, 100 * s.bias);
  text += fmt::format("90 % intervals: coverage {:.1f} %\n", 100 * s.interval_coverage);
  if (s.pairs > 0) {
    text +=
        fmt::format("ranking: Kendall tau {:.2f} over {} pairs, whose errors differ by {:.1f} %",
                    s.kendall_tau, s.pairs, 100 * s.pair_spread);
    if (s.regret_groups > 0) {
      text += fmt::format(
          "; the predicted best is {:.1f} % slower than the measured best (mean of {} sweeps)",
          100 * s.top1_regret, s.regret_groups);
    }
    text += "\n";
  }
  return text;
}

std::string memory_figures(const ValidationSummary& s) {
  std::string text;
  if (s.memory_n > 0) {
    text += fmt::format("memory: {} rows, mean error {:.1f} %, largest {:.1f} %\n", s.memory_n,
                        100 * s.memory_mape, 100 * s.memory_max_ape);
  }
  if (s.oom_total > 0 || s.false_oom > 0) {
    text += fmt::format("OOM: {} of {} OOM runs predicted, {} false alarms\n", s.oom_caught,
                        s.oom_total, s.false_oom);
  }
  return text;
}

std::string figures(const ValidationSummary& s) { return time_figures(s) + memory_figures(s); }

// Returns the predicted rows that are not excluded, largest error first.
std::vector<const RunOutcome*> worst_of(const std::vector<RunOutcome>& outcomes) {
  std::vector<const RunOutcome*> worst;
  for (const RunOutcome& run : outcomes) {
    if (run.error() && run.skipped_because.empty()) worst.push_back(&run);
  }
  std::sort(worst.begin(), worst.end(), [](const RunOutcome* a, const RunOutcome* b) {
    return std::fabs(*a->error()) > std::fabs(*b->error());
  });
  worst.resize(std::min(worst.size(), kWorstShown));
  return worst;
}

std::vector<std::pair<std::string, std::int64_t>> skip_counts(
    const std::vector<RunOutcome>& outcomes) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const RunOutcome& run : outcomes) {
    if (run.skipped_because.empty()) continue;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) {
      return entry.first == run.skipped_because;
    });
    if (found == counts.end()) {
      counts.emplace_back(run.skipped_because, 1);
    } else {
      ++found->second;
    }
  }
  return counts;
}

Table rows_table(const std::vector<RunOutcome>& outcomes) {
  Table table(
      columns_of("<row|<|measured|predicted|90 % interval|error|GiB "
                 "measured|predicted|p(OOM)|<on|<skipped because"));
  const auto shown = [](bool there, std::string text) { return there ? text : std::string("-"); };
  for (const RunOutcome& run : outcomes) {
    const auto error = run.error();
    table.add_row({printable(run.id),
                   run.outcome == "oom" ? "oom"
                   : run.calibration    ? "fit"
                                        : "",
                   shown(run.measured_step_s.has_value(),
                         fmt::format("{:.3f} s", run.measured_step_s.value_or(0))),
                   shown(run.predicted, fmt::format("{:.3f} s", run.step_s)),
                   shown(run.predicted, fmt::format("{:.2f} - {:.2f}", run.low_s, run.high_s)),
                   shown(error.has_value(), error_text(error.value_or(0))),
                   shown(run.measured_memory_gib.has_value(),
                         fmt::format("{:.1f}", run.measured_memory_gib.value_or(0))),
                   shown(run.predicted, fmt::format("{:.1f}", run.memory_gib)),
                   shown(run.predicted, chance_text(run.p_oom)),
                   run.cluster.empty() ? "" : printable(run.cluster + ", " + run.stack),
                   printable(run.skipped_because)});
  }
  return table;
}

std::string report_text(const Terminal& terminal, const std::vector<RunOutcome>& outcomes) {
  std::string text = rows_table(outcomes).text(terminal) + "\n";
  const std::vector<RunOutcome> fitted = rows_of(outcomes, true);
  if (!fitted.empty()) {
    text += terminal.paint("rows that constants were fitted on", Ink::kBold) + "\n";
    text += figures(summarize(fitted)) + "\n";
    text += terminal.paint("all other rows", Ink::kBold) + "\n";
  }
  return text + figures(summarize(rows_of(outcomes, false)));
}

std::string markdown_row(const char* what, const ValidationSummary& s) {
  const std::string memory =
      s.memory_n == 0 ? "-" : fmt::format("{:.1f} % of {}", 100 * s.memory_mape, s.memory_n);
  const std::string oom =
      s.oom_total == 0 ? fmt::format("{} false", s.false_oom)
                       : fmt::format("{}/{}, {} false", s.oom_caught, s.oom_total, s.false_oom);
  return fmt::format(
      "| {} | {} | {:.2f} % | {:.1f} % | {:.2f} % | {:.1f} % | {:.1f} % | {:+.2f} % "
      "| {} | {} | {:.0f} % | {} | {} |\n",
      what, s.n, 100 * s.mape, 100 * s.half_peak_mape, 100 * s.median_ape, 100 * s.p95_ape,
      100 * s.max_ape, 100 * s.bias,
      s.pairs == 0 ? "-" : fmt::format("{:.2f} ({} pairs)", s.kendall_tau, s.pairs),
      s.regret_groups == 0 ? "-" : fmt::format("{:.1f} %", 100 * s.top1_regret),
      100 * s.interval_coverage, memory, oom);
}

std::string markdown_text(const std::string& file, const std::vector<RunOutcome>& outcomes) {
  std::string text = fmt::format("## {}\n\n", std::filesystem::path(file).stem().string());
  text +=
      "| rows | n | mean | of \"50 % of peak\" | median | P95 | max | bias "
      "| Kendall tau | regret | 90 % interval holds | memory | OOM |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  text += markdown_row("test", summarize(rows_of(outcomes, false)));
  const std::vector<RunOutcome> fitted = rows_of(outcomes, true);
  if (!fitted.empty()) text += markdown_row("calibration", summarize(fitted));
  if (const auto worst = worst_of(outcomes); !worst.empty()) {
    text += "\nThe worst rows:";
    for (const RunOutcome* run : worst) {
      text += fmt::format(" {} {},", run->id, error_text(*run->error()));
    }
    text.back() = '.';
    text += "\n";
  }
  for (const auto& [reason, count] : skip_counts(outcomes)) {
    text += fmt::format("\nNot counted: {} row{}: {}.\n", count, count == 1 ? "" : "s", reason);
  }
  return text;
}

// Returns an error if no row was predicted, so that scripts can detect it. The printed table has
// the reason for each row.
Status check_priced(const std::vector<RunOutcome>& outcomes) {
  const bool any = std::any_of(outcomes.begin(), outcomes.end(),
                               [](const RunOutcome& run) { return run.predicted; });
  if (any) return Ok{};
  const auto reasons = skip_counts(outcomes);
  const auto commonest =
      std::max_element(reasons.begin(), reasons.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string why =
      commonest == reasons.end()
          ? "the table has no rows"
          : fmt::format("{} of {}: {}", commonest->second, outcomes.size(), commonest->first);
  return option_error("--runs", "no row could be predicted", why);
}

}  // namespace

Status run_validate(const Arguments& arguments, const Terminal& terminal) {
  if (!arguments.positional.empty()) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {"--runs", "--markdown"},
               "the option is for tables of runs; remove it, or give --runs instead of the plan"));
    return validate_plan(arguments, terminal);
  }
  TPSIM_TRY(RunsRequest request, runs_request(arguments));
  const Result<std::vector<RunOutcome>> outcomes = [&] {
    ProgressBar progress(terminal, "predicting");
    request.progress = progress.shower();
    return validate_answer(request);
  }();
  if (!outcomes.ok()) return outcomes.error();
  const std::string report = arguments.has("--json") ? to_text(validate_json(*outcomes))
                             : arguments.has("--markdown")
                                 ? markdown_text(*arguments["--runs"], *outcomes)
                                 : report_text(terminal, *outcomes);
  TPSIM_TRY_STATUS(print(terminal, report));
  return check_priced(*outcomes);
}

}  // namespace tpsim::cli
