#include "app/answers/log_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "evidence/logs/log_reader.h"
#include "evidence/logs/profiler_files.h"
#include "frameworks/launch/launch_command.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

template <class... Terms>
Seconds sum_of(const Prediction& predicted, Terms... terms) {
  return (time_of(predicted, terms) + ...);
}

Seconds predicted_collectives(const Prediction& p) {
  return sum_of(p, StepTerm::kTensorCommunication, StepTerm::kZeroCommunication,
                StepTerm::kContextCommunication, StepTerm::kExpertCommunication,
                StepTerm::kImbalance, StepTerm::kTransfer, StepTerm::kBubble,
                StepTerm::kGradientReduction, StepTerm::kTiedEmbedding, StepTerm::kWeightGather,
                StepTerm::kStragglers);
}

const KernelRow& largest_excess(const std::vector<KernelRow>& rows) {
  const auto excess = [](const KernelRow& row) { return row.measured - row.predicted; };
  return *std::max_element(rows.begin(), rows.end(), [&](const KernelRow& a, const KernelRow& b) {
    return excess(a) < excess(b);
  });
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
      case GapCause::kImpossible:
      case GapCause::kOtherArguments: continue;
    }
  }
  return CauseClass::kAny;
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

// Returns the step with the log's arguments, and adds the settings and parts that differ from the
// plan and change the step to `differ`: "dispatcher alltoall instead of deepep".
Result<Seconds> step_as_stated(const ImportAnswer& stated, const CheckedLog& checked,
                               std::vector<std::string>& differ) {
  const auto add = [&](std::string_view key, const std::string& in_log,
                       const std::string& planned) {
    differ.push_back(fmt::format("{} {} instead of {}", key, in_log, planned));
  };
  const Plan& plan = checked.file.plan;
  for (const SettingRow& row : setting_rows()) {
    const std::string in_log = text_of(stated.file.plan, row.setting);
    const std::string planned = text_of(plan, row.setting);
    if (row.counts_for == nullptr && in_log != planned) add(row.key, in_log, planned);
  }
  Scenario run = checked.named.scenario;
  for (const auto& [part, value] : stated.stated) {
    constexpr double kNoticed = 1e-3;  // of the step
    const std::int64_t planned = row_of(part).get(checked.named.scenario.stack);
    if (value == planned) continue;
    Scenario alone = checked.named.scenario;
    alone.stack = with_parts(alone.stack, {{part, value}});
    const Result<Prediction> other = simulate(alone, plan);
    const bool is_same =
        other.ok() && std::abs(other->step / checked.predicted.step - 1) < kNoticed;
    if (is_same) continue;
    run.stack = with_parts(run.stack, {{part, value}});
    add(row_of(part).key, text_of(row_of(part), value), text_of(row_of(part), planned));
  }
  TPSIM_TRY(const Prediction predicted, simulate(run, stated.file.plan));
  return predicted.step;
}

// Adds the differences between the arguments that the log prints and the plan as the first cause.
void add_arguments(const OpenedLog& log, CheckedLog& checked) {
  ImportRequest asked;
  asked.inputs.model = checked.named.scenario.model;
  asked.inputs.model_wins = true;
  asked.scenario.predicts = false;
  const auto stated = arguments_in_log(asked, log);
  std::vector<Finding>& findings = checked.check.findings;
  if (!stated.ok()) {
    findings.push_back({GapCause::kUnexplained,
                        fmt::format("the log's arguments were not compared with the plan's: {}",
                                    stated.error().message)});
    return;
  }
  if (!*stated) return;
  std::vector<std::string> differ;
  const Result<Seconds> step = step_as_stated(**stated, checked, differ);
  if (differ.empty()) return;
  std::erase_if(findings, [](const Finding& one) { return one.cause == GapCause::kUnexplained; });
  findings.insert(findings.begin(),
                  {GapCause::kOtherArguments,
                   fmt::format("the log states {}{}", fmt::join(differ, ", "),
                               step.ok() ? fmt::format("; with its arguments {} are predicted",
                                                       time_text(*step))
                                         : "")});
}

}  // namespace

std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& p) {
  const Seconds products = sum_of(p, StepTerm::kMatmul, StepTerm::kGroupedProducts);
  const Seconds attention = time_of(p, StepTerm::kAttention);
  std::vector<KernelRow> rows;
  if (plan.attention == AttentionKind::kFlash) {
    rows.push_back({"GEMMs", kernels[KernelClass::kProducts], products, CauseClass::kCompute});
    rows.push_back(
        {"attention", kernels[KernelClass::kAttention], attention, CauseClass::kCompute});
  } else {
    // Without flash attention, the kernel names do not distinguish the GEMMs of attention from
    // others.
    rows.push_back({"GEMMs, including attention",
                    kernels[KernelClass::kProducts] + kernels[KernelClass::kAttention],
                    products + attention, CauseClass::kCompute});
  }
  rows.push_back({"other kernels, copies",
                  kernels[KernelClass::kOthers] + kernels[KernelClass::kCopies],
                  sum_of(p, StepTerm::kRecurrence, StepTerm::kElementwise, StepTerm::kPermute,
                         StepTerm::kClipping, StepTerm::kOptimizer),
                  CauseClass::kCompute});
  rows.push_back({"exposed collectives, including waiting", kernels.exposed,
                  predicted_collectives(p), CauseClass::kLinks});
  rows.push_back(
      {"no kernel runs", kernels.idle,
       sum_of(p, StepTerm::kHostWait, StepTerm::kHostStep, StepTerm::kUncalibratedOverhead),
       CauseClass::kHost});
  return rows;
}

Result<std::optional<ImportAnswer>> arguments_in_log(const ImportRequest& request,
                                                     const OpenedLog& log) {
  const bool is_coloured = log.text.find('\033') != std::string::npos;
  const std::string text = is_coloured ? without_escapes(log.text) : log.text;
  if (!has_arguments_block(text)) return std::optional<ImportAnswer>();
  ImportRequest asked = request;
  asked.path = log.path;
  asked.more.clear();  // other logs
  TPSIM_TRY(ImportAnswer read, import_log_answer(asked, text));
  return std::optional(std::move(read));
}

Result<CheckedLog> check_log_answer(const CheckLogRequest& request) {
  CheckedLog checked;
  TPSIM_TRY(const TrainingLog log, steps_of(request.log, checked.kernels));
  checked.file = *request.scenario.file;
  const Plan& plan = checked.file.plan;
  TPSIM_TRY(checked.named, load_scenario(request.scenario));
  const Scenario& scenario = checked.named.scenario;
  TPSIM_TRY(checked.predicted, simulate(scenario, plan));
  TPSIM_TRY(checked.check, check_log(scenario, plan, checked.predicted, log));
  if (checked.kernels) add_kernels(checked);
  if (!checked.check.as_predicted()) add_arguments(request.log, checked);
  if (const std::optional<CauseClass> acts_on = class_to_try(checked.check)) {
    TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
    const Result<StackSpec> own = catalogue.load_stack(checked.named.stack);
    TPSIM_TRY(checked.likely,
              likely_causes(scenario, own.ok() ? *own : scenario.stack, plan,
                            checked.check.predicted, checked.check.measured, *acts_on));
  }
  return checked;
}

}  // namespace tpsim::app
