// tpsim check-log: compares a training log with the plan's prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "cli/commands/commands.h"
#include "cli/options/answers.h"
#include "cli/options/inputs.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "evidence/calibration/nccl_tests.h"
#include "evidence/logs/log_check.h"
#include "evidence/logs/log_reader.h"
#include "evidence/logs/nsys_report.h"
#include "frameworks/launch/launch_command.h"
#include "sim/step/simulate.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kCausesShown = 5;

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

JsonValue json_if(bool said, double value) { return said ? JsonValue(value) : JsonValue(); }

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

// Returns the class of causes to try, from the first finding about time. Nothing if the step time
// is as predicted or faster than the GPUs' peak, or if one slow rank causes the gap.
std::optional<CauseClass> class_to_try(const LogCheck& check) {
  if (check.time_as_predicted || !check.is_possible) return std::nullopt;
  for (const Finding& finding : check.findings) {
    switch (finding.cause) {
      case GapCause::kSlowerCompute: return CauseClass::kCompute;
      case GapCause::kSlowerLinks: return CauseClass::kLinks;
      case GapCause::kHostBound: return CauseClass::kHost;
      case GapCause::kStraggler: return std::nullopt;
      case GapCause::kFaster:
      case GapCause::kUnexplained: return CauseClass::kAny;
      case GapCause::kMemory:
      case GapCause::kUnsound:
      case GapCause::kImpossible: continue;
    }
  }
  return CauseClass::kAny;
}

struct PlanOfLog {
  PlanFile file;
  bool from_log = false;  // the plan was read from the log, and options are already applied
};

// Returns the plan of the second argument or --plan, else that of the arguments in the log.
Result<PlanOfLog> plan_of_log(const Arguments& arguments, const OpenedLog& log) {
  const bool named = arguments.has(Opt::kPlanFile);
  if (arguments.more.size() > (named ? 0U : 1U)) {
    return option_error(Opt::kPlanFile, "more than one plan is given",
                        "tpsim check-log training.log plan.json");
  }
  if (named || !arguments.more.empty()) {
    TPSIM_TRY_STATUS(refuse(arguments, {Opt::kModel, Opt::kGpus}, "the plan states this value"));
    TPSIM_TRY(PlanFile file,
              read_plan(named ? *arguments[Opt::kPlanFile] : arguments.more.front()));
    return PlanOfLog{std::move(file), false};
  }
  TPSIM_TRY(const auto printed, plan_printed_in_log(arguments, log));
  if (printed) return PlanOfLog{*printed, true};
  return option_error(Opt::kPlanFile, "the plan of this run is missing",
                      "give a plan file that --save wrote; only a Megatron log that prints its "
                      "arguments needs none");
}

// Returns the value of --max-gap, if given.
Result<std::optional<double>> most_gap(const Arguments& arguments) {
  if (!arguments.has(Opt::kMaxGap)) return std::optional<double>();
  TPSIM_TRY(const double most, probability_of(arguments, Opt::kMaxGap, 0.1));
  return std::optional(most);
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
  return Error{ErrorKind::kDoesNotFit, what, row_of(Opt::kMaxGap).name,
               fmt::format("the limit is {}", percent_text(most))};
}

// Converts the steps of a profiler trace to a log with step times only.
TrainingLog log_of(const KernelTimes& kernels) {
  TrainingLog log;
  log.layout.gpus = kernels.gpus;
  for (const Seconds time : kernels.steps) {
    log.steps.push_back({.iteration = std::ssize(log.steps) + 1, .time = time});
  }
  return log;
}

// Adds kernel times. If the step is slow, the row with the largest excess is the first finding.
void add_kernels(CheckedLog& checked) {
  LogCheck& check = checked.check;
  checked.kernel_rows = kernel_rows(*checked.kernels, checked.file.plan, checked.predicted);
  std::erase_if(check.findings,
                [](const Finding& finding) { return finding.cause == GapCause::kUnexplained; });
  if (check.time_as_predicted || check.gap() <= 0) return;
  const KernelRow& most = largest_excess(checked.kernel_rows);
  const GapCause cause = most.explained_by == CauseClass::kCompute ? GapCause::kSlowerCompute
                         : most.explained_by == CauseClass::kLinks ? GapCause::kSlowerLinks
                                                                   : GapCause::kHostBound;
  check.findings.insert(check.findings.begin(),
                        {cause, fmt::format("{}: measured {} per step, predicted {}", most.what,
                                            time_text(most.measured), time_text(most.predicted))});
}

// Returns the step times of a log. For a trace or Nsight report, `kernels` gets the kernel times.
Result<TrainingLog> steps_of(const OpenedLog& log, std::optional<KernelTimes>& kernels) {
  if (log.is_report) {
    TPSIM_TRY(kernels, read_nsys_report_file(log.path));
  } else if (is_nsys_report(log.text)) {  // decompressed, or read from standard input
    TPSIM_TRY(kernels, read_nsys_report(log.text, log.path));
  } else if (is_kernel_trace(log.text)) {
    TPSIM_TRY(kernels, read_kernel_trace(log.text, log.path));
  } else {
    return parse_training_log(log.text, log.path);
  }
  return log_of(*kernels);
}

// Whether the file is a database of Nsight Systems.
bool is_report_file(const std::string& path) {
  if (path == "-") return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(16, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return file.gcount() == static_cast<std::streamsize>(head.size()) && is_nsys_report(head);
}

}  // namespace

Status refuse_reports(const std::string& file) {
  if (!file.ends_with(".nsys-rep")) return Ok{};
  return bad_input("is a report of Nsight Systems in its own binary format", file,
                   "convert it with nsys export --type sqlite, then give that file and plan.json");
}

Result<OpenedLog> open_or_reuse(const OpenedLog& first, const std::string& path) {
  return path == first.path ? Result(first) : open_log(path);
}

Result<OpenedLog> open_log(const std::string& path) {
  TPSIM_TRY_STATUS(refuse_reports(path));
  OpenedLog log;
  log.path = path;
  log.is_report = is_report_file(path);
  if (!log.is_report) {
    TPSIM_TRY(log.text, read_log_text(path));
  }
  return log;
}

JsonValue check_log_json(const CheckedLog& checked) {
  const LogCheck& check = checked.check;
  JsonValue json = json_object({
      {"version", "tpsim-log-report/1"},
      {"as_predicted", check.as_predicted()},
      {"steps", check.steps_used},
      {"measured_step_s", check.measured.value()},
      {"predicted_step_s", check.predicted.value()},
      {"step_s_low", check.low.value()},
      {"step_s_high", check.high.value()},
      {"time_as_predicted", check.time_as_predicted},
      {"memory_as_predicted", check.memory_as_predicted},
      {"memory_gib", json_array(check.memory,
                                [](const StageReserved& row) {
                                  return json_object({{"stage", row.stage},
                                                      {"reserved", row.measured.value() / kGiB},
                                                      {"predicted", row.predicted.value() / kGiB}});
                                })},
      {"gap", check.gap()},
      {"warm_up_steps", check.warm_up},
      {"other_batch_steps", check.other_batch},
      {"nan_losses", check.nan_losses},
      {"skipped_steps", check.skipped},
      {"load_balancing_loss", json_if(check.balancing_loss >= 0, check.balancing_loss)},
      {"z_loss", json_if(check.z_loss >= 0, check.z_loss)},
      {"logged_expert_load", json_if(check.logged_load > 0, check.logged_load)},
      {"training_part", check.training_part.empty() ? JsonValue() : JsonValue(check.training_part)},
      {"logged_tflops_per_gpu", check.logged_tflops},
      {"measured_tflops_per_gpu", check.model_tflops},
      {"measured_half_mask_tflops_per_gpu", check.half_mask_tflops},
      {"model_tflops_per_gpu", checked.predicted.model_tflops_per_gpu},
      {"likely",
       json_array(checked.likely,
                  [](const LikelyCause& cause) {
                    return json_object({{"what", cause.what}, {"step_s", cause.step.value()}});
                  })},
      {"findings", json_array(check.findings,
                              [](const Finding& finding) {
                                return json_object({{"cause", name_of(finding.cause)},
                                                    {"evidence", finding.evidence}});
                              })},
  });
  if (checked.kernels) json.set("kernels", kernel_json(*checked.kernels, checked.kernel_rows));
  return json;
}

Result<std::optional<PlanFile>> plan_printed_in_log(const Arguments& arguments,
                                                    const OpenedLog& log) {
  const bool is_coloured = log.text.find('\033') != std::string::npos;
  const std::string text = is_coloured ? without_escapes(log.text) : log.text;
  if (!has_arguments_block(text)) return std::optional<PlanFile>();
  Arguments asked = arguments;
  asked.command = Command::kImport;
  asked.positional = log.path;
  asked.more.clear();
  TPSIM_TRY(ImportAnswer read, import_log_answer(asked, text));
  return std::optional(std::move(read.file));
}

Result<CheckedLog> check_log_answer(const Arguments& arguments, const PlanFile& file) {
  TPSIM_TRY(const OpenedLog log, open_log(arguments.positional));
  return check_log_answer(arguments, log, file);
}

Result<CheckedLog> check_log_answer(const Arguments& arguments, const OpenedLog& opened,
                                    const PlanFile& file) {
  CheckedLog checked;
  TPSIM_TRY(const TrainingLog log, steps_of(opened, checked.kernels));
  checked.file = file;
  TPSIM_TRY(checked.named, load_scenario(arguments, file));
  const NamedScenario& named = checked.named;
  TPSIM_TRY(checked.predicted, simulate(named.scenario, file.plan));
  TPSIM_TRY(checked.check, check_log(named.scenario, file.plan, checked.predicted, log));
  if (checked.kernels) add_kernels(checked);
  if (const std::optional<CauseClass> acts_on = class_to_try(checked.check)) {
    TPSIM_TRY(checked.likely, likely_causes(named.scenario, file.plan, checked.check.predicted,
                                            checked.check.measured, *acts_on, kCausesShown));
  }
  return checked;
}

Status run_check_log(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.positional.empty()) {
    return bad_input("no log was given", "check-log", "tpsim check-log training.log plan.json");
  }
  TPSIM_TRY(const std::optional<double> most, most_gap(arguments));
  TPSIM_TRY(const OpenedLog log, open_log(arguments.positional));
  if (is_nccl_test(log.text)) {
    return bad_input("is output of nccl-tests, which check-log cannot compare",
                     arguments.positional,
                     "use tpsim calibrate " + arguments.positional + " --cluster NAME");
  }
  TPSIM_TRY(const PlanOfLog plan, plan_of_log(arguments, log));
  Arguments asked = arguments;
  if (plan.from_log) {
    asked = Arguments{};
    asked.command = arguments.command;
    asked.positional = arguments.positional;
  }
  TPSIM_TRY(const CheckedLog checked, check_log_answer(asked, log, plan.file));
  TPSIM_TRY_STATUS(print(terminal, arguments.has(Opt::kJson) ? to_text(check_log_json(checked))
                                                             : check_text(terminal, checked)));
  return most ? check_gaps(checked.check, *most) : Ok{};
}

}  // namespace tpsim::cli
