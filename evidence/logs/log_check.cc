#include "evidence/logs/log_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/median.h"
#include "core/base/normal.h"
#include "core/plan/rank_layout.h"
#include "evidence/logs/log_layout.h"
#include "lowering/passes/expert_load.h"

namespace tpsim {
namespace {

constexpr double kSlowStep = 1.2;   // relative to the median
constexpr double kManySlow = 0.05;  // share of slow steps that is reported

std::vector<Finding> unsteady_steps(const std::vector<Seconds>& steps, Seconds middle) {
  const auto slow = std::count_if(steps.begin(), steps.end(),
                                  [&](Seconds step) { return step > kSlowStep * middle; });
  if (static_cast<double>(slow) < kManySlow * static_cast<double>(steps.size()) || slow < 2)
    return {};
  return {{GapCause::kStraggler, fmt::format("{} of {} steps take more than {} times the median",
                                             slow, steps.size(), kSlowStep)}};
}

// Returns the step time. A log that states only a rate is converted with the plan's batch size.
Seconds time_of_step(const LoggedStep& step, const Plan& plan, std::int64_t seq) {
  if (step.time > Seconds()) return step.time;
  if (step.samples_per_s > 0) {
    return Seconds(static_cast<double>(plan.global_batch) / step.samples_per_s);
  }
  const double tokens = static_cast<double>(plan.global_batch * seq);
  const double rate = step.tokens_per_s > 0
                          ? step.tokens_per_s
                          : step.tokens_per_s_gpu * static_cast<double>(gpu_count(plan));
  return Seconds(tokens / rate);
}

// Whether the step has the plan's global batch. A difference of 0.5 % is accepted, because logs
// round: "1.02K" is 1,024 sequences.
bool is_of_batch(const LoggedStep& step, std::int64_t batch) {
  constexpr double kRounded = 0.005;
  const auto apart = static_cast<double>(std::abs(step.global_batch - batch));
  return step.global_batch == 0 || apart <= kRounded * static_cast<double>(batch);
}

struct UsableSteps {
  std::vector<Seconds> times;
  std::int64_t warm_up = 0, other_batch = 0;
};

Result<UsableSteps> usable_steps(const Plan& plan, std::int64_t seq, const TrainingLog& log) {
  UsableSteps usable;
  std::vector<Seconds>& steps = usable.times;
  for (const LoggedStep& step : log.steps) {
    if (is_of_batch(step, plan.global_batch)) steps.push_back(time_of_step(step, plan, seq));
  }
  if (steps.empty()) {
    return bad_input(
        fmt::format("the steps of the log have {} sequences, but those of the plan have {}",
                    log.steps.back().global_batch, plan.global_batch),
        "", "give the plan of this run, or a log after the batch-size ramp-up");
  }
  usable.other_batch = std::ssize(log.steps) - std::ssize(steps);
  if (steps.size() > 2 * kWarmUpSteps) {
    steps.erase(steps.begin(), steps.begin() + kWarmUpSteps);
    usable.warm_up = kWarmUpSteps;
  }
  return usable;
}

// Adds findings about NaN losses and skipped steps.
void judge_run(const TrainingLog& log, LogCheck& check) {
  check.nan_losses = log.nan_losses;
  check.skipped = log.skipped;
  const auto steps = static_cast<std::int64_t>(log.steps.size());
  check.iterations = std::max(log.iterations, steps);
  if (log.nan_losses > 0) {
    check.findings.push_back(
        {GapCause::kUnsound, fmt::format("the loss of {} of {} steps is NaN or infinite",
                                         std::min(log.nan_losses, steps), steps)});
  }
  if (2 * log.skipped >= check.iterations) {
    check.findings.push_back(
        {GapCause::kUnsound,
         fmt::format("{} of {} steps were skipped for overflowing gradients",
                     std::min(log.skipped, check.iterations), check.iterations)});
  }
  check.is_sound = check.findings.empty();
}

// Returns the GPU's matrix peak in TFLOP/s: dense 16-bit, or the highest low-precision rate if the
// plan uses low precision.
double peak_tflops(const DeviceFacts& device, const Plan& plan) {
  const FlopsPerSecond widest =
      plan.precision == Precision::kNone
          ? device.matmul_peak
          : std::max({device.matmul_peak, device.fp8_peak, device.mxfp8_peak, device.nvfp4_peak});
  return widest.value() / 1e12;
}

// Adds a finding if the logged TFLOP/s, or the TFLOP/s computed from the measured step, exceed the
// GPU's peak.
void judge_rates(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                 const TrainingLog& log, LogCheck& check) {
  check.model_tflops = predicted.model_tflops_per_gpu * (predicted.step / check.measured);
  check.half_mask_tflops = predicted.half_mask_tflops_per_gpu * (predicted.step / check.measured);
  if (!log.tflops.empty()) check.logged_tflops = upper_median(log.tflops);
  const double peak = peak_tflops(scenario.profile.device, plan);
  check.is_possible = check.model_tflops <= peak;
  const bool counts_itself = check.logged_tflops > peak;
  if (!counts_itself && check.is_possible) return;
  check.findings.push_back(
      {GapCause::kImpossible,
       counts_itself
           ? fmt::format("the log states {:.0f} TFLOP/s per GPU, but the GPU's peak is {:.0f}",
                         check.logged_tflops, peak)
           : fmt::format(
                 "the step time implies {:.0f} TFLOP/s per GPU, but the GPU's peak is {:.0f}: "
                 "check that the log times whole steps and that the plan is the plan of this run",
                 check.model_tflops, peak)});
}

Result<std::vector<StageReserved>> reserved_by_stage(const Plan& plan, const Prediction& predicted,
                                                     const TrainingLog& log) {
  std::map<std::int64_t, Bytes> stages;
  for (const auto& [rank, bytes] : log.reserved) {
    if (rank >= gpu_count(plan)) {
      return bad_input(
          fmt::format("the log contains rank {}, but the plan has {} GPUs", rank, gpu_count(plan)),
          "", "give the plan of this run");
    }
    const std::int64_t stage = coordinates(plan, rank).pp;
    stages[stage] = std::max(stages[stage], bytes);
  }
  std::vector<StageReserved> rows;
  for (const auto& [stage, bytes] : stages) {
    rows.push_back(
        {stage, bytes, allocator_share(predicted.memory[static_cast<std::size_t>(stage)])});
  }
  return rows;
}

void judge_memory(double spread, LogCheck& check) {
  for (const StageReserved& row : check.memory) {
    if (row.measured <= row.predicted * (1 + kHalfOf90 * spread) &&
        row.measured >= row.predicted * (1 - kHalfOf90 * spread)) {
      continue;
    }
    check.memory_as_predicted = false;
    check.findings.push_back(
        {GapCause::kMemory,
         fmt::format("stage {} reserved {} instead of the predicted {}", row.stage,
                     to_string(row.measured), to_string(row.predicted))});
  }
}

// Returns the median of the second half of the log, when the router has settled; -1 if there are no
// values.
double settled(std::vector<double> values) {
  if (values.empty()) return -1;
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return upper_median(std::move(values));
}

// Derives the load imbalance from the balancing loss. If router scores are proportional to token
// shares, the loss is 1 + (standard deviation / mean of the token shares)^2.
void add_experts(const Scenario& scenario, const Plan& plan, const TrainingLog& log,
                 LogCheck& check) {
  check.balancing_loss = settled(log.balancing_losses);
  check.z_loss = settled(log.z_losses);
  if (check.balancing_loss < 0 || !has_experts(scenario.model)) return;
  const double spread = std::sqrt(std::max(0.0, check.balancing_loss - 1));
  check.logged_load = busiest_load(scenario.model, plan, spread);
  check.predicted_load = busiest_load(scenario.stack, scenario.model, plan);
}

}  // namespace

Bytes allocator_share(const StageMemory& memory) {
  const auto buffers = static_cast<std::size_t>(MemoryCategory::kCommunication);
  return memory.total() - memory.context - memory.by_category[buffers];
}

double share_of_peak(const Scenario& scenario, const Plan& plan, Seconds step) {
  const Flops flops = half_mask_flops_per_step(scenario.model, plan.global_batch);
  const double rate = (flops / step).value() / static_cast<double>(gpu_count(plan)) / 1e12;
  return rate / peak_tflops(scenario.profile.device, plan);
}

double LogCheck::memory_gap() const {
  double largest = 0;
  for (const StageReserved& row : memory) {
    const double off = row.measured / row.predicted - 1;
    if (std::abs(off) > std::abs(largest)) largest = off;
  }
  return largest;
}

Result<LogCheck> check_log(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                           const TrainingLog& log) {
  TPSIM_TRY_STATUS(check_layout(scenario, plan, log.layout));
  TPSIM_TRY(const UsableSteps usable, usable_steps(plan, scenario.model.seq, log));
  const std::vector<Seconds>& steps = usable.times;
  LogCheck check;
  judge_run(log, check);
  add_experts(scenario, plan, log, check);
  check.training_part = log.training_part;
  check.warm_up = usable.warm_up;
  check.other_batch = usable.other_batch;
  check.steps_used = static_cast<std::int64_t>(steps.size());
  check.measured = median(steps);
  judge_rates(scenario, plan, predicted, log, check);
  check.predicted = predicted.step;
  check.low = predicted.step_low;
  check.high = predicted.step_high;
  check.time_as_predicted = check.measured >= check.low && check.measured <= check.high;
  if (check.measured > check.high) {
    for (Finding& finding : explained_gap(plan, predicted, log, check.measured)) {
      check.findings.push_back(std::move(finding));
    }
  } else if (check.measured < check.low) {
    check.findings.push_back(
        {GapCause::kFaster, fmt::format("the step takes {} instead of the predicted {}",
                                        to_string(check.measured), to_string(check.predicted))});
  }
  for (Finding& finding : unsteady_steps(steps, check.measured)) {
    check.findings.push_back(std::move(finding));
  }
  TPSIM_TRY(check.memory, reserved_by_stage(plan, predicted, log));
  judge_memory(scenario.stack.memory.spread, check);
  return check;
}

}  // namespace tpsim
