// Results of `calibrate` as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "cli/views/answer_views.h"
#include "core/base/normal.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "evidence/calibration/contradictions.h"

namespace tpsim::cli {
namespace {

bool is_shown(const FittedConstant& fitted) {
  constexpr double kLeastShown = 0.1;
  return fitted.information() > kLeastShown;
}

std::string word_of(StackPart part, std::int64_t value) { return text_of(row_of(part), value); }

void write_constants(TextReport& out, const Calibration& found) {
  Table table(columns_of("<constant|before|after|+-|learned|<meaning"));
  std::vector<std::string_view> silent;
  for (const FittedConstant& fitted : found.constants) {
    const TunableConstant& constant = *fitted.constant;
    if (!is_shown(fitted)) {
      silent.push_back(constant.key);
      continue;
    }
    table.add_row({fmt::format("{} {}", name_of(constant.owner), constant.key),
                   constant.text(fitted.before), constant.text(fitted.after), fitted.error_text(),
                   percent_text(fitted.information()), constant.meaning()});
  }
  out.table(table);
  if (silent.empty()) return;
  out.prose(
      fmt::format("not identifiable from these rows, left unchanged: {}", fmt::join(silent, ", ")));
}

void write_parts(TextReport& out, const Calibration& found) {
  for (const FittedPart& part : found.parts) {
    const std::string_view key = row_of(part.part).key;
    const std::string value = word_of(part.part, part.after);
    out.line("  part {}: {} instead of {}, because the rows fit this value better", key, value,
             word_of(part.part, part.before));
    out.line("    if they did not run so, state it: column {}, or {} {}", key, option_of(part.part),
             word_of(part.part, part.before));
  }
  if (found.suspected_precision) {
    const std::string_view recipe = name_of(*found.suspected_precision);
    out.line("  precision {} would fit the rows better than none; it is not applied", recipe);
    out.line("    if they ran so, state it: columns dtype and precision_recipe, or --precision {}",
             recipe);
  }
}

// Lists rows that contradict the others: a fit to the other rows predicts them badly.
void write_contradictions(TextReport& out, const Calibration& found) {
  for (const std::size_t i : contradicting_steps(found.steps)) {
    const FittedStep& step = found.steps[i];
    out.line(
        "  row {} contradicts the others: {} measured, {} predicted from them ({:+.1f} %); check "
        "this row",
        printable(step.id), time_text(Seconds(step.measured)), time_text(Seconds(step.left_out)),
        100 * (step.measured / step.left_out - 1));
  }
}

// States a common error of all rows, which the limits of the constants leave.
void write_bias(TextReport& out, const Calibration& found) {
  constexpr double kLeastBias = 0.03;
  const double bias = std::expm1(found.bias());
  if (std::fabs(bias) < kLeastBias) return;
  out.line("  the rows are {:.1f} % {} than predicted after the fit, on average: a setting that",
           100 * std::fabs(bias), bias < 0 ? "faster" : "slower");
  out.line("  they do not state is likely (tpsim explain --runs FILE --row ID lists the terms)");
}

void write_next(TextReport& out, const Arguments& arguments) {
  const auto& stack = arguments["--save-stack"];
  const auto& cluster = arguments["--save-cluster"];
  if (!stack && !cluster) {
    return out.line("  --save-stack FILE and --save-cluster FILE write the result");
  }
  const std::string options =
      (stack ? " --stack " + *stack : "") + (cluster ? " --cluster " + *cluster : "");
  out.line("  tpsim validate --runs other_runs.csv{}", options);
  out.line("  tpsim plan --model MODEL --gpus N{}", options);
}

// Writes a warning if the measured efficiency is less than half of the cluster file's. Links of one
// kind usually differ by a few percent, so a lower rate indicates a fault or a disabled feature.
void write_fault(TextReport& out, const FittedLink& link) {
  constexpr double kFault = 0.5;
  const double share = link.after.efficiency / link.before.efficiency;
  if (share >= kFault) return;
  out.blank();
  out.prose(fmt::format(
      "This link reaches {:.0f} % of its usual rate, which indicates a fault: {}. Use this "
      "calibration only if the training has the same fault.",
      100 * share,
      link.between_nodes ? "no GPUDirect RDMA, TCP instead of RDMA, or a NIC or cable that is down"
                         : "no NVLink or peer access (copies through the host)"));
}

}  // namespace

void write_calibration(TextReport& out, const Arguments& arguments,
                       const CalibrationAnswer& answer) {
  const Calibration& found = answer.found;
  std::string what;
  if (answer.moves_stack) what += "stack " + answer.inputs.stack.name;
  if (answer.moves_cluster) {
    what += fmt::format("{}cluster {}", what.empty() ? "" : " and ", answer.inputs.cluster.name);
  }
  out.heading("CALIBRATION", fmt::format("{} on {}", what, answer.inputs.of));
  write_constants(out, found);
  write_parts(out, found);
  out.blank();
  out.line("  mean error of the rows: {:.1f} % before, {:.1f} % after", 100 * found.error_before(),
           100 * found.error_after());
  out.line("  cross-validation error (one layout left out at a time): {:.1f} %",
           100 * found.error_left_out());
  out.line("  expect 90 % of similar runs within {:.0f} %; other runs can differ more",
           100 * std::expm1(kHalfOf90 * found.spread));
  write_bias(out, found);
  if (found.shrinkage < 1) {
    out.line(
        "  a full fit would predict left-out rows worse than before, so the constants moved only");
    out.line("  {:.0f} % of the way; more or other rows are needed", 100 * found.shrinkage);
  }
  write_contradictions(out, found);
  for (const std::string& row : answer.inputs.skipped) out.line("  not used: {}", printable(row));
  out.heading("NEXT");
  write_next(out, arguments);
}

void write_link(TextReport& out, const Arguments& arguments, const LinkAnswer& answer) {
  const FittedLink& link = answer.link;
  out.heading("CALIBRATION", fmt::format("cluster {} on {} messages of {}", answer.cluster.name,
                                         answer.messages, printable(answer.files)));
  Table table(columns_of("<constant|before|after|+-"));
  table.add_row({answer.key() + ".efficiency", fmt::format("{:.3g}", link.before.efficiency),
                 fmt::format("{:.3g}", link.after.efficiency),
                 fmt::format("{:.2g}", link.efficiency_error * link.after.efficiency)});
  table.add_row({answer.key() + ".latency", to_string(link.before.latency),
                 to_string(link.after.latency),
                 to_string(link.latency_error * link.after.latency)});
  out.table(table);
  out.blank();
  out.line("  mean error of the messages: {:.1f} % before, {:.1f} % after", 100 * link.error_before,
           100 * link.error_after);
  out.line("  cross-validation error (every second size left out): {:.1f} %",
           100 * link.error_left_out);
  write_fault(out, link);
  out.heading("NEXT");
  if (const auto& saved = arguments["--save-cluster"]) {
    return out.line("  tpsim plan --model MODEL --gpus N --cluster {}", *saved);
  }
  out.line("  --save-cluster FILE writes the calibrated cluster");
}

}  // namespace tpsim::cli
