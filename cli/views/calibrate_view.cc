// Results of `calibrate` as text and as JSON, and the calibrated files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/options/calibrate.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/normal.h"
#include "core/base/numbers.h"
#include "evidence/calibration/contradictions.h"

namespace tpsim::cli {

std::string calibrated_name(const std::string& name) {
  constexpr std::string_view kEnd = "-calibrated";
  return name.ends_with(kEnd) ? name : name + std::string(kEnd);
}

double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

namespace {

bool is_shown(const FittedConstant& fitted) {
  constexpr double kLeastShown = 0.1;
  return fitted.information() > kLeastShown;
}

bool moved(const FittedConstant& fitted) { return fitted.before != fitted.after; }

std::string word_of(StackPart part, std::int64_t value) { return text_of(row_of(part), value); }

// Returns the changed constants of a stack or cluster: "host.per_op 14.5 us to 9 us, norm_kernel
// fused to torch".
std::string changes_text(const Calibration& found, ConstantOwner owner) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& before, const std::string& after) {
    text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", key, before, after);
  };
  for (const FittedConstant& fitted : found.constants) {
    if (fitted.constant->owner != owner || !moved(fitted)) continue;
    add(fitted.constant->key, fitted.constant->text(fitted.before),
        fitted.constant->text(fitted.after));
  }
  if (owner == ConstantOwner::kStack) {
    for (const FittedPart& part : found.parts) {
      add(row_of(part.part).key, word_of(part.part, part.before), word_of(part.part, part.after));
    }
  }
  return text;
}

std::string provenance(const CalibrationAnswer& answer, ConstantOwner owner) {
  const std::string changes = changes_text(answer.found, owner);
  return fmt::format("; calibrated on {}, {}: {}; mean error of left-out rows {:.1f} %",
                     answer.inputs.of, today(), changes.empty() ? "no constant changed" : changes,
                     100 * answer.found.error_left_out());
}

CalibrationFacts facts_of(const CalibrationAnswer& answer) {
  const Calibration& found = answer.found;
  CalibrationFacts facts;
  facts.rows = static_cast<std::int64_t>(found.steps.size());
  facts.on = answer.inputs.of;
  facts.date = today();
  facts.left_out_error = found.error_left_out();
  facts.host_spread = found.host_spread;
  facts.kernel_spread = found.kernel_spread;
  facts.network_spread = found.network_spread;
  return facts;
}

template <class T>
void round_time(T& time) {
  time = T(rounded(time.value()));
}

void round_constants(StackSpec& stack) {
  for (double* value : {&stack.uncalibrated_overhead, &stack.eager_traffic, &stack.flash_speed,
                        &stack.overlap_slowdown, &stack.tp_overlap, &stack.rank_jitter}) {
    *value = rounded(*value);
  }
  for (Seconds* time : times_of(stack.host)) round_time(*time);
}

void round_facts(CalibrationFacts& facts) {
  for (double* value :
       {&facts.left_out_error, &facts.host_spread, &facts.kernel_spread, &facts.network_spread}) {
    *value = rounded(*value);
  }
}

Scenario owners_of(const CalibrationInputs& inputs) {
  Scenario scenario;
  scenario.stack = inputs.stack;
  scenario.cluster = inputs.cluster;
  return scenario;
}

Table constants_table(const Calibration& found) {
  Table table(columns_of("<constant|before|after|+-|learned|<meaning"));
  for (const FittedConstant& fitted : found.constants) {
    if (!is_shown(fitted)) continue;
    const TunableConstant& constant = *fitted.constant;
    table.add_row({fmt::format("{} {}", name_of(constant.owner), constant.key),
                   constant.text(fitted.before), constant.text(fitted.after), fitted.error_text(),
                   percent_text(fitted.information()), std::string(constant.meaning)});
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
  const auto& stack = arguments[Opt::kSaveStack];
  const auto& cluster = arguments[Opt::kSaveCluster];
  if (!stack && !cluster) {
    return "  --save-stack FILE and --save-cluster FILE write the result\n";
  }
  const std::string options =
      (stack ? " --stack " + *stack : "") + (cluster ? " --cluster " + *cluster : "");
  return fmt::format(
      "  tpsim validate --runs other_runs.csv{}\n  tpsim plan --model MODEL --gpus N{}\n", options,
      options);
}

JsonValue constant_json(const FittedConstant& fitted) {
  return json_object({{"file", name_of(fitted.constant->owner)},
                      {"key", fitted.constant->key},
                      {"before", fitted.before},
                      {"after", fitted.after},
                      {"error", fitted.error_of_value()},
                      {"told", fitted.information()}});
}

JsonValue part_json(const FittedPart& part) {
  return json_object({{"key", row_of(part.part).key},
                      {"before", word_of(part.part, part.before)},
                      {"after", word_of(part.part, part.after)}});
}

JsonValue step_json(const FittedStep& step) {
  return json_object({{"id", step.id},
                      {"measured_step_s", step.measured},
                      {"before_step_s", step.before},
                      {"after_step_s", step.after},
                      {"left_out_step_s", step.left_out}});
}

}  // namespace

StackSpec calibrated_stack(const CalibrationAnswer& answer) {
  StackSpec stack = calibrated(owners_of(answer.inputs), answer.found, {}).stack;
  round_constants(stack);
  stack.name = calibrated_name(stack.name);
  stack.source += provenance(answer, ConstantOwner::kStack);
  stack.aliases.clear();
  stack.residual_spread = rounded(std::min(1.0, answer.found.spread));
  stack.calibrated = facts_of(answer);
  round_facts(stack.calibrated);
  return stack;
}

ClusterSpec calibrated_cluster(const CalibrationAnswer& answer) {
  ClusterSpec cluster = calibrated(owners_of(answer.inputs), answer.found, {}).cluster;
  for (double* value : {&cluster.intra_node.efficiency, &cluster.inter_node.efficiency,
                        &cluster.nic_collision_efficiency, &cluster.gpu_clock}) {
    *value = rounded(*value);
  }
  round_time(cluster.inter_node.latency);
  cluster.name = calibrated_name(cluster.name);
  cluster.source += provenance(answer, ConstantOwner::kCluster);
  cluster.aliases.clear();
  cluster.calibrated = facts_of(answer);
  round_facts(cluster.calibrated);
  return cluster;
}

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

JsonValue calibration_json(const CalibrationAnswer& answer) {
  const Calibration& found = answer.found;
  return json_object(
      {{"version", "tpsim-calibrate-report/1"},
       {"stack", answer.moves_stack ? JsonValue(answer.inputs.stack.name) : JsonValue()},
       {"cluster", answer.moves_cluster ? JsonValue(answer.inputs.cluster.name) : JsonValue()},
       {"on", answer.inputs.of},
       {"rows", json_array(found.steps, step_json)},
       {"constants", json_array(found.constants, constant_json)},
       {"parts", json_array(found.parts, part_json)},
       {"mean_error_before", found.error_before()},
       {"mean_error_after", found.error_after()},
       {"mean_error_left_out", found.error_left_out()},
       {"way", found.shrinkage},
       {"residual_spread", found.spread},
       {"contradicting", json_array(contradicting_steps(found.steps),
                                    [&](std::size_t i) { return JsonValue(found.steps[i].id); })},
       {"skipped", json_array(answer.inputs.skipped)}});
}

}  // namespace tpsim::cli
