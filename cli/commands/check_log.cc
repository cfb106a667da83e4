// tpsim check-log: compares a training log with the plan's prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/answers/log_answer.h"
#include "app/reports/evidence_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
#include "core/base/numbers.h"
#include "core/scenario/plan_json.h"
#include "evidence/calibration/nccl_tests.h"

namespace tpsim::cli {
namespace {

std::string verdict(const TextReport& out, bool as_predicted) {
  return as_predicted ? out.paint("as predicted", Ink::kGood)
                      : out.paint("not as predicted", Ink::kBad);
}

void write_time(TextReport& out, const LogCheck& check) {
  const TimeScale scale = time_scale(check.high);
  out.line("  step time  {}: {} {} ({}), predicted {} ({} to {}): {:+.1f} %",
           verdict(out, check.time_as_predicted), out.bold(scaled_text(check.measured, scale)),
           scale.unit, counted_text(check.steps_used, "step"), scaled_text(check.predicted, scale),
           scaled_text(check.low, scale), scaled_text(check.high, scale), 100 * check.gap());
  const std::string other =
      check.other_batch > 0 ? fmt::format("; {} of another batch size", check.other_batch) : "";
  if (check.warm_up == 0) {
    out.line("             too few steps to exclude warm-up steps{}", other);
  } else {
    out.line("             after {} warm-up steps{}", check.warm_up, other);
  }
  if (check.training_part.empty()) return;
  out.line("             only {} of each step is compared, without generation",
           check.training_part);
}

// Shows the logged TFLOP/s per GPU and two rates that tpsim computes from the logged step time,
// because frameworks count the FLOPs of causal attention in full or by half.
void write_rate(TextReport& out, const LogCheck& check, const Prediction& predicted) {
  if (check.logged_tflops == 0) return;
  out.line(
      "  speed      TFLOP/s per GPU: {:.1f} in the log. From its step time: {:.1f} counting all of",
      check.logged_tflops, check.model_tflops);
  out.line("             causal attention, {:.1f} counting half (Megatron since 2024);",
           check.half_mask_tflops);
  out.line("             predicted {:.1f} and {:.1f}, {:.1f} with recompute",
           predicted.model_tflops_per_gpu, predicted.half_mask_tflops_per_gpu,
           predicted.hardware_tflops_per_gpu);
}

void write_experts(TextReport& out, const LogCheck& check) {
  if (check.balancing_loss < 0) return;
  out.line("  experts    load-balancing loss {:.3f} (1: perfectly balanced){}",
           check.balancing_loss,
           check.z_loss >= 0 ? fmt::format(", z loss {:.3g}", check.z_loss) : "");
  if (check.logged_load <= 0) return;
  out.line(
      "             the busiest rank then gets about {:.2f} x the mean; the prediction assumes",
      check.logged_load);
  out.line("             {:.2f} (--expert-load {:.2f} predicts the logged load)",
           check.predicted_load, check.logged_load);
}

void write_log_memory(TextReport& out, const LogCheck& check) {
  if (check.memory.empty()) return out.line("  memory     not in the log");
  out.line("  memory     {}, GiB reserved by the allocator:",
           verdict(out, check.memory_as_predicted));
  Table table(columns_of("stage|reserved|predicted|off"));
  for (const StageReserved& row : check.memory) {
    table.add_row({std::to_string(row.stage), gib_text(row.measured), gib_text(row.predicted),
                   error_text(row.measured / row.predicted - 1)});
  }
  out.table(table);
}

void write_causes(TextReport& out, const CheckedLog& checked) {
  if (checked.likely.empty()) return;
  out.heading("WHAT WOULD EXPLAIN IT",
              "single changes and the step that tpsim predicts with them, closest first");
  Table table(columns_of("<changed alone|step|of the gap"));
  const Seconds gap = checked.check.measured - checked.check.predicted;
  for (const LikelyCause& cause : checked.likely) {
    table.add_row({cause.what, time_text(cause.step),
                   percent_text((cause.step - checked.check.predicted) / gap)});
  }
  out.table(table);
}

// Suggests the next commands; `calibrate` only if the step time is not as predicted.
void write_next(TextReport& out, const LogCheck& check) {
  if (!check.is_sound || !check.is_possible) return;
  out.heading("NEXT");
  if (!check.time_as_predicted) {
    out.line(
        "  tpsim calibrate LOG PLAN ... --save-stack stack.json   # several logs constrain the fit "
        "better");
  }
  out.line("  tpsim campaign PLAN --tokens N --step-time {:.4g}s   # as measured",
           check.measured.value());
}

void write_check(TextReport& out, const CheckedLog& checked) {
  const LogCheck& check = checked.check;
  out.heading("LOG",
              fmt::format("against {} of {} on {}", short_name(checked.file.plan),
                          printable(checked.file.model.name), printable(checked.named.cluster)));
  write_time(out, check);
  write_rate(out, check, checked.predicted);
  if (check.skipped > 0) {
    out.line("  skipped    {} of {} steps, because gradients overflowed", check.skipped,
             std::max(check.skipped, check.iterations));
  }
  write_experts(out, check);
  write_log_memory(out, check);
  if (checked.kernels) write_kernels(out, *checked.kernels, checked.kernel_rows);
  if (!check.findings.empty()) {
    out.heading("WHY", check.findings.size() > 1 ? "largest cause first" : "");
    for (const Finding& finding : check.findings) {
      out.prose(out.bold(name_of(finding.cause)) + ": " + printable(finding.evidence));
    }
  }
  write_causes(out, checked);
  write_next(out, check);
}

struct PlanOfLog {
  PlanFile file;
  bool from_log = false;  // the plan was read from the log, and options are already applied
};

// Returns the plan of the second argument or --plan, else that of the arguments in the log.
Result<PlanOfLog> plan_of_log(const Arguments& arguments, const OpenedLog& log) {
  if (arguments.plan) return PlanOfLog{*arguments.plan, false};
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
  TPSIM_TRY(const auto printed, arguments_in_log(import, log));
  if (printed) return PlanOfLog{printed->file, true};
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

Result<Answer> run_check_log(const Arguments& arguments, const Terminal& terminal) {
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
  Answer answer = answered(
      arguments, terminal, [&] { return check_log_json(checked); },
      [&](TextReport& out) { write_check(out, checked); });
  if (most) answer.outcome = check_gaps(checked.check, *most);
  return answer;
}

}  // namespace tpsim::cli
