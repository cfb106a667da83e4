// tpsim check-log: compares a training log with the plan's prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/answers/log_answer.h"
#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/evidence_view.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "evidence/calibration/nccl_tests.h"

namespace tpsim::cli {
namespace {

std::string verdict(const Terminal& terminal, bool as_predicted) {
  return as_predicted ? terminal.paint("as predicted", Ink::kGood)
                      : terminal.paint("not as predicted", Ink::kBad);
}

std::string steps_text(std::int64_t steps) {
  return steps == 1 ? "1 step" : fmt::format("{} steps", steps);
}

std::string time_view(const Terminal& terminal, const LogCheck& check) {
  const TimeScale scale = time_scale(check.high);
  std::string text =
      fmt::format("  step time  {}: {} {} ({}), predicted {} ({} to {}): {:+.1f} %\n",
                  verdict(terminal, check.time_as_predicted),
                  terminal.paint(scaled_text(check.measured, scale), Ink::kBold), scale.unit,
                  steps_text(check.steps_used), scaled_text(check.predicted, scale),
                  scaled_text(check.low, scale), scaled_text(check.high, scale), 100 * check.gap());
  text += check.warm_up == 0 ? "             too few steps to exclude warm-up steps"
                             : fmt::format("             after {} warm-up steps", check.warm_up);
  if (check.other_batch > 0) text += fmt::format("; {} of another batch size", check.other_batch);
  if (!check.training_part.empty()) {
    text += fmt::format("\n             only {} of each step is compared, without generation",
                        check.training_part);
  }
  return text + "\n";
}

// Shows the logged TFLOP/s per GPU and two rates that tpsim computes from the logged step time,
// because frameworks count the FLOPs of causal attention in full or by half.
std::string rate_view(const LogCheck& check, const Prediction& predicted) {
  if (check.logged_tflops == 0) return "";
  return fmt::format(
      "  speed      TFLOP/s per GPU: {:.1f} in the log. From its step time: {:.1f} counting all "
      "of\n"
      "             causal attention, {:.1f} counting half (Megatron since 2024);\n"
      "             predicted {:.1f} and {:.1f}, {:.1f} with recompute\n",
      check.logged_tflops, check.model_tflops, check.half_mask_tflops,
      predicted.model_tflops_per_gpu, predicted.half_mask_tflops_per_gpu,
      predicted.hardware_tflops_per_gpu);
}

std::string skipped_view(const LogCheck& check) {
  if (check.skipped == 0) return "";
  return fmt::format("  skipped    {} of {} steps, because gradients overflowed\n", check.skipped,
                     std::max(check.skipped, check.iterations));
}

std::string expert_view(const LogCheck& check) {
  if (check.balancing_loss < 0) return "";
  std::string text = fmt::format("  experts    load-balancing loss {:.3f} (1: perfectly balanced)",
                                 check.balancing_loss);
  if (check.z_loss >= 0) text += fmt::format(", z loss {:.3g}", check.z_loss);
  text += "\n";
  if (check.logged_load > 0) {
    text += fmt::format(
        "             the busiest rank then gets about {:.2f} x the mean; the prediction assumes\n"
        "             {:.2f} (--expert-load {:.2f} predicts the logged load)\n",
        check.logged_load, check.predicted_load, check.logged_load);
  }
  return text;
}

std::string memory_view(const Terminal& terminal, const LogCheck& check) {
  if (check.memory.empty()) return "  memory     not in the log\n";
  Table table({{"stage"}, {"reserved"}, {"predicted"}, {"off"}});
  for (const StageReserved& row : check.memory) {
    table.add_row({std::to_string(row.stage), gib_text(row.measured), gib_text(row.predicted),
                   fmt::format("{:+.1f} %", 100 * (row.measured / row.predicted - 1))});
  }
  return fmt::format("  memory     {}, GiB reserved by the allocator:\n",
                     verdict(terminal, check.memory_as_predicted)) +
         table.text(terminal);
}

std::string causes_view(const Terminal& terminal, const CheckedLog& checked) {
  if (checked.likely.empty()) return "";
  Table table({{"changed alone", Align::kLeft}, {"step"}, {"of the gap"}});
  const Seconds gap = checked.check.measured - checked.check.predicted;
  for (const LikelyCause& cause : checked.likely) {
    table.add_row({cause.what, time_text(cause.step),
                   percent_text((cause.step - checked.check.predicted) / gap)});
  }
  return "\n" +
         heading(terminal, "WHAT WOULD EXPLAIN IT",
                 "single changes and the step that tpsim predicts with them, closest first") +
         table.text(terminal);
}

// Suggests the next commands; `calibrate` only if the step time is not as predicted.
std::string next_view(const Terminal& terminal, const CheckedLog& checked) {
  const LogCheck& check = checked.check;
  std::string text = "\n" + heading(terminal, "NEXT");
  if (!check.is_sound || !check.is_possible) return "";
  if (!check.time_as_predicted) {
    text +=
        "  tpsim calibrate LOG PLAN ... --save-stack stack.json   # several logs constrain "
        "the fit better\n";
  }
  return text +
         fmt::format("  tpsim campaign PLAN --tokens N --step-time {:.4g}s   # as measured\n",
                     check.measured.value());
}

std::string check_text(const Terminal& terminal, const CheckedLog& checked) {
  const LogCheck& check = checked.check;
  std::string text =
      heading(terminal, "LOG",
              fmt::format("against {} of {} on {}", short_name(checked.file.plan),
                          printable(checked.file.model.name), printable(checked.named.cluster)));
  text += time_view(terminal, check) + rate_view(check, checked.predicted) + skipped_view(check) +
          expert_view(check) + memory_view(terminal, check);
  if (checked.kernels) text += kernel_view(terminal, *checked.kernels, checked.kernel_rows);
  if (!check.findings.empty()) {
    text += "\n" + heading(terminal, "WHY", check.findings.size() > 1 ? "largest cause first" : "");
    for (const Finding& finding : check.findings) {
      text += fmt::format("  {}: {}\n", terminal.paint(name_of(finding.cause), Ink::kBold),
                          printable(finding.evidence));
    }
  }
  return text + causes_view(terminal, checked) + next_view(terminal, checked);
}

struct PlanOfLog {
  PlanFile file;
  bool from_log = false;  // the plan was read from the log, and options are already applied
};

// Returns the plan of the second argument or --plan, else that of the arguments in the log.
Result<PlanOfLog> plan_of_log(const Arguments& arguments, const OpenedLog& log) {
  const bool named = arguments.has("--plan");
  if (arguments.more.size() > (named ? 0U : 1U)) {
    return option_error("--plan", "more than one plan is given",
                        "tpsim check-log training.log plan.json");
  }
  if (named || !arguments.more.empty()) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--model", "--gpus"}, "the plan states this value"));
    TPSIM_TRY(PlanFile file, read_plan(named ? *arguments["--plan"] : arguments.more.front()));
    return PlanOfLog{std::move(file), false};
  }
  TPSIM_TRY(const ImportRequest import, import_request(arguments));
  TPSIM_TRY(const auto printed, plan_printed_in_log(import, log));
  if (printed) return PlanOfLog{*printed, true};
  return option_error("--plan", "the plan of this run is missing",
                      "give a plan file that --save wrote; only a Megatron log that prints its "
                      "arguments needs none");
}

// Returns kDoesNotFit if the run has faults, or if its step time or memory differs from the
// prediction by more than `most`.
Status check_gaps(const LogCheck& check, double most) {
  std::string what;
  if (!check.is_sound) {
    what = "the run has faults";
  } else if (std::abs(check.gap()) > most) {
    what = fmt::format("the step differs from the prediction by {:+.1f} %", 100 * check.gap());
  } else if (std::abs(check.memory_gap()) > most) {
    what = fmt::format("the memory of a stage differs by {:+.1f} %", 100 * check.memory_gap());
  } else {
    return Ok{};
  }
  return Error{ErrorKind::kDoesNotFit, what, row_of("--max-gap").name,
               fmt::format("the limit is {}", percent_text(most))};
}

}  // namespace

Status run_check_log(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.positional.empty()) {
    return bad_input("no log was given", "check-log", "tpsim check-log training.log plan.json");
  }
  TPSIM_TRY(const std::optional<double> most, probability_of(arguments, "--max-gap"));
  TPSIM_TRY(const OpenedLog log, open_log(arguments.positional));
  if (is_nccl_test(log.text)) {
    return bad_input("is output of nccl-tests, which check-log cannot compare",
                     arguments.positional,
                     "use tpsim calibrate " + arguments.positional + " --cluster NAME");
  }
  TPSIM_TRY(const PlanOfLog plan, plan_of_log(arguments, log));
  CheckLogRequest request{.log = log};
  if (plan.from_log) {
    request.scenario = {.file = plan.file, .origin = arguments.positional, .predicts = false};
  } else {
    TPSIM_TRY(request.scenario, scenario_request(arguments, plan.file));
  }
  TPSIM_TRY(const CheckedLog checked, check_log_answer(request));
  TPSIM_TRY_STATUS(print(terminal, arguments.has("--json") ? to_text(check_log_json(checked))
                                                           : check_text(terminal, checked)));
  return most ? check_gaps(checked.check, *most) : Ok{};
}

}  // namespace tpsim::cli
