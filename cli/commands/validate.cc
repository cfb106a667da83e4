// tpsim validate --runs: predicts published runs and prints the errors of the predictions.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "app/answers/run_answers.h"
#include "app/reports/evidence_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
#include "core/base/numbers.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kWorstShown = 8;

void write_time_figures(TextReport& out, const ValidationSummary& s) {
  if (s.n == 0) return out.line("no row has a measured step time");
  out.line(
      "step time: {} {}, mean error {:.2f} %, median {:.2f} %, P95 {:.1f} %, max {:.1f} %, bias "
      "{:+.2f} %",
      s.n, s.n == 1 ? "row" : "rows", 100 * s.mape, 100 * s.median_ape, 100 * s.p95_ape,
      100 * s.max_ape, 100 * s.bias);
  out.line("90 % intervals: coverage {:.1f} %", 100 * s.interval_coverage);
  if (s.pairs == 0) return;
  const std::string regret = s.regret_groups == 0
                                 ? ""
                                 : fmt::format(
                                       "; the predicted best is {:.1f} % slower than the measured "
                                       "best (mean of {} sweeps)",
                                       100 * s.top1_regret, s.regret_groups);
  out.note(
      fmt::format("ranking: Kendall tau {:.2f} over {} pairs, whose errors differ by {:.1f} %{}",
                  s.kendall_tau, s.pairs, 100 * s.pair_spread, regret));
}

void write_figures(TextReport& out, const ValidationSummary& s) {
  write_time_figures(out, s);
  if (s.memory_n > 0) {
    out.line("memory: {} rows, mean error {:.1f} %, largest {:.1f} %", s.memory_n,
             100 * s.memory_mape, 100 * s.memory_max_ape);
  }
  if (s.oom_total > 0 || s.false_oom > 0) {
    out.line("OOM: {} of {} OOM runs predicted, {} false alarms", s.oom_caught, s.oom_total,
             s.false_oom);
  }
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

// Names stated columns that do nothing with the software of their rows, and rows whose p(OOM) rests
// on an assumption.
void write_notes(TextReport& out, const std::vector<RunOutcome>& outcomes) {
  std::map<std::string, std::int64_t> idle;
  std::int64_t open = 0;
  for (const RunOutcome& run : outcomes) {
    for (const std::string& one : run.without_effect) ++idle[one + " with stack " + run.stack];
    open += run.has_open_recompute ? 1 : 0;
  }
  for (const auto& [what, rows] : idle) {
    out.line("no effect: {} ({} {})", printable(what), rows, rows == 1 ? "row" : "rows");
  }
  if (open == 0) return;
  out.line(
      "recompute is not stated in {} {}: p(OOM) is the mean of no and full recompute, the step "
      "time is that of none",
      open, open == 1 ? "row" : "rows");
}

void write_report(TextReport& out, const std::vector<RunOutcome>& outcomes) {
  out.table(rows_table(outcomes));
  write_notes(out, outcomes);
  out.blank();
  const std::vector<RunOutcome> fitted = rows_of(outcomes, true);
  if (!fitted.empty()) {
    out.line("{}", out.bold("rows that constants were fitted on"));
    write_figures(out, summarize(fitted));
    out.blank();
    out.line("{}", out.bold("all other rows"));
  }
  write_figures(out, summarize(rows_of(outcomes, false)));
}

void write_markdown_row(TextReport& out, const char* what, const ValidationSummary& s) {
  const std::string memory =
      s.memory_n == 0 ? "-" : fmt::format("{:.1f} % of {}", 100 * s.memory_mape, s.memory_n);
  const std::string oom =
      s.oom_total == 0 ? fmt::format("{} false", s.false_oom)
                       : fmt::format("{}/{}, {} false", s.oom_caught, s.oom_total, s.false_oom);
  out.line(
      "| {} | {} | {:.2f} % | {:.1f} % | {:.2f} % | {:.1f} % | {:.1f} % | {:+.2f} % "
      "| {} | {} | {:.0f} % | {} | {} |",
      what, s.n, 100 * s.mape, 100 * s.half_peak_mape, 100 * s.median_ape, 100 * s.p95_ape,
      100 * s.max_ape, 100 * s.bias,
      s.pairs == 0 ? "-" : fmt::format("{:.2f} ({} pairs)", s.kendall_tau, s.pairs),
      s.regret_groups == 0 ? "-" : fmt::format("{:.1f} %", 100 * s.top1_regret),
      100 * s.interval_coverage, memory, oom);
}

void write_markdown(TextReport& out, const std::string& file,
                    const std::vector<RunOutcome>& outcomes) {
  out.line("## {}\n", std::filesystem::path(file).stem().string());
  out.line(
      "| rows | n | mean | of \"50 % of peak\" | median | P95 | max | bias "
      "| Kendall tau | regret | 90 % interval holds | memory | OOM |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|");
  write_markdown_row(out, "test", summarize(rows_of(outcomes, false)));
  const std::vector<RunOutcome> fitted = rows_of(outcomes, true);
  if (!fitted.empty()) write_markdown_row(out, "calibration", summarize(fitted));
  if (const auto worst = worst_runs(outcomes, kWorstShown); !worst.empty()) {
    out.line("\nThe worst rows: {}.", joined_text(worst, ", ", [](const RunOutcome* run) {
               return run->id + " " + error_text(*run->error());
             }));
  }
  for (const auto& [reason, count] : skipped_runs(outcomes)) {
    out.line("\nNot counted: {} row{}: {}.", count, count == 1 ? "" : "s", reason);
  }
}

// Returns an error if no row was predicted, so that scripts can detect it. The printed table has
// the reason for each row.
Status check_priced(const std::vector<RunOutcome>& outcomes) {
  const bool any = std::any_of(outcomes.begin(), outcomes.end(),
                               [](const RunOutcome& run) { return run.predicted; });
  if (any) return Ok{};
  const auto reasons = skipped_runs(outcomes);
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

Result<Answer> run_validate(const Arguments& arguments, const Terminal& terminal) {
  if (!arguments.positional.empty()) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {"--runs", "--markdown"},
               "the option is for tables of runs; remove it, or give --runs instead of the plan"));
    return validate_plan(arguments, terminal);
  }
  TPSIM_TRY(RunsRequest request, runs_request(arguments));
  ProgressBar progress(terminal, "predicting");
  request.progress = progress.shower();
  TPSIM_TRY(const std::vector<RunOutcome> outcomes, validate_answer(request));
  Answer answer = answered(
      arguments, terminal, [&] { return validate_json(outcomes); },
      [&](TextReport& out) {
        if (arguments.has("--markdown")) return write_markdown(out, request.table, outcomes);
        write_report(out, outcomes);
      });
  answer.verdict = check_priced(outcomes);
  return answer;
}

}  // namespace tpsim::cli
