// Results of `calibrate` as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/evidence_view.h"
#include "cli/views/plan_view.h"
#include "core/base/normal.h"
#include "core/base/numbers.h"
#include "evidence/calibration/contradictions.h"

namespace tpsim::cli {
namespace {

bool is_shown(const FittedConstant& fitted) {
  constexpr double kLeastShown = 0.1;
  return fitted.information() > kLeastShown;
}

std::string word_of(StackPart part, std::int64_t value) { return text_of(row_of(part), value); }

Table constants_table(const Calibration& found) {
  Table table(columns_of("<constant|before|after|+-|learned|<meaning"));
  for (const FittedConstant& fitted : found.constants) {
    if (!is_shown(fitted)) continue;
    const TunableConstant& constant = *fitted.constant;
    table.add_row({fmt::format("{} {}", name_of(constant.owner), constant.key),
                   constant.text(fitted.before), constant.text(fitted.after), fitted.error_text(),
                   percent_text(fitted.information()), constant.meaning()});
  }
  return table;
}

std::string silent_text(const Calibration& found) {
  std::string text;
  for (const FittedConstant& fitted : found.constants) {
    if (is_shown(fitted)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", fitted.constant->key);
  }
  return text.empty()
             ? ""
             : fmt::format("  not identifiable from these rows, left unchanged: {}\n", text);
}

std::string parts_text(const Calibration& found) {
  std::string text;
  for (const FittedPart& part : found.parts) {
    text += fmt::format("  part {}: {} instead of {}, because the rows fit this value better\n",
                        row_of(part.part).key, word_of(part.part, part.after),
                        word_of(part.part, part.before));
  }
  return text;
}

// Lists rows that contradict the others: a fit to the other rows predicts them badly.
std::string contradictions_text(const Calibration& found) {
  std::string text;
  for (const std::size_t i : contradicting_steps(found.steps)) {
    const FittedStep& step = found.steps[i];
    text += fmt::format(
        "  row {} contradicts the others: {} measured, {} predicted from them ({:+.1f} %); check "
        "this row\n",
        printable(step.id), time_text(Seconds(step.measured)), time_text(Seconds(step.left_out)),
        100 * (step.measured / step.left_out - 1));
  }
  return text;
}

std::string next_text(const Arguments& arguments) {
  const auto& stack = arguments["--save-stack"];
  const auto& cluster = arguments["--save-cluster"];
  if (!stack && !cluster) {
    return "  --save-stack FILE and --save-cluster FILE write the result\n";
  }
  const std::string options =
      (stack ? " --stack " + *stack : "") + (cluster ? " --cluster " + *cluster : "");
  return fmt::format(
      "  tpsim validate --runs other_runs.csv{}\n  tpsim plan --model MODEL --gpus N{}\n", options,
      options);
}

}  // namespace

std::string calibration_text(const Terminal& terminal, const Arguments& arguments,
                             const CalibrationAnswer& answer) {
  const Calibration& found = answer.found;
  std::string what;
  if (answer.moves_stack) what += "stack " + answer.inputs.stack.name;
  if (answer.moves_cluster) {
    what += fmt::format("{}cluster {}", what.empty() ? "" : " and ", answer.inputs.cluster.name);
  }
  std::string text =
      heading(terminal, "CALIBRATION", fmt::format("{} on {}", what, answer.inputs.of));
  text += constants_table(found).text(terminal) + silent_text(found) + parts_text(found);
  text += fmt::format(
      "\n  mean error of the rows: {:.1f} % before, {:.1f} % after\n"
      "  cross-validation error (one layout left out at a time): {:.1f} %\n"
      "  expect 90 % of similar runs within {:.0f} %; other runs can differ more\n",
      100 * found.error_before(), 100 * found.error_after(), 100 * found.error_left_out(),
      100 * std::expm1(kHalfOf90 * found.spread));
  if (found.shrinkage < 1) {
    text += fmt::format(
        "  a full fit would predict left-out rows worse than before, so the constants moved only\n "
        " {:.0f} % of the way; more or other rows are needed\n",
        100 * found.shrinkage);
  }
  text += contradictions_text(found);
  for (const std::string& row : answer.inputs.skipped) {
    text += fmt::format("  not used: {}\n", printable(row));
  }
  return text + "\n" + heading(terminal, "NEXT") + next_text(arguments);
}

}  // namespace tpsim::cli
