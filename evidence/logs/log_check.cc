#include "evidence/logs/log_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "core/plan/rank_layout.h"
#include "evidence/logs/log_layout.h"
#include "sim/layers/expert_prices.h"

namespace tpsim {
namespace {

constexpr std::size_t kWarmUpSteps = 2;
// A rank whose compute takes this much longer than another's is not what uneven stages explain.
constexpr double kSlowRank = 1.25;
constexpr double kSlowStep = 1.2;   // over the median
constexpr double kManySlow = 0.05;  // share of steps
constexpr double kMemorySpreads = 1.645;

// Parts of a step that logs time.
enum class LogPart : std::uint8_t { kBlocks, kReduction, kTransfers, kOptimizer, kDataLoading };

// Where a term's time is in a log; nothing for what no timer covers.
std::optional<LogPart> log_part(StepTerm term) {
  switch (term) {
    case StepTerm::kMatmul:
    case StepTerm::kAttention:
    case StepTerm::kRecurrence:
    case StepTerm::kElementwise:
    case StepTerm::kTensorCommunication:
    case StepTerm::kZeroCommunication:
    case StepTerm::kContextCommunication:
    case StepTerm::kExpertCommunication:
    case StepTerm::kGroupedProducts:
    case StepTerm::kPermute:
    case StepTerm::kImbalance:
    case StepTerm::kHostWait: return LogPart::kBlocks;
    case StepTerm::kGradientReduction:
    case StepTerm::kTiedEmbedding: return LogPart::kReduction;
    case StepTerm::kTransfer: return LogPart::kTransfers;
    case StepTerm::kClipping:
    case StepTerm::kOptimizer:
    case StepTerm::kWeightGather: return LogPart::kOptimizer;
    case StepTerm::kHostStep: return LogPart::kDataLoading;
    case StepTerm::kBubble:
    case StepTerm::kStragglers:
    case StepTerm::kUncalibratedOverhead: return std::nullopt;
  }
  return std::nullopt;
}

// Timers of a log, and what it means when they take longer than the terms that they cover.
struct Group {
  LogPart part;
  const char* what;
  GapCause cause;
  std::vector<const char*> timers;  // summed, where the log has them
};

// Timers of Megatron-LM (old and new names) and of BigScience's fork.
const std::vector<Group>& megatron_groups() {
  static const std::vector<Group> groups = {
      {LogPart::kBlocks,
       "forward and backward of the blocks",
       GapCause::kSlowerCompute,
       {"forward-compute", "backward-compute"}},
      {LogPart::kReduction,
       "gradient reduction",
       GapCause::kSlowerLinks,
       {"all-grads-sync", "grads-all-reduce", "backward-params-all-reduce",
        "embedding-grads-all-reduce", "backward-embedding-all-reduce"}},
      {LogPart::kTransfers,
       "pipeline transfers",
       GapCause::kSlowerLinks,
       {"forward-send", "backward-send", "forward-send-backward-recv",
        "backward-send-forward-recv"}},
      {LogPart::kOptimizer, "optimizer step", GapCause::kSlowerCompute, {"optimizer"}},
      {LogPart::kDataLoading, "data loading", GapCause::kHostBound, {"batch-generator"}},
  };
  return groups;
}

Seconds median(std::vector<Seconds> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1) return values[half];
  return (values[half - 1] + values[half]) / 2;
}

// Of two in the middle the upper one; not of nothing.
double upper_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of the slowest rank, after warm-up where there are enough.
template <class Pick>
Seconds timer_of(const std::vector<LoggedTimer>& timers, Pick pick) {
  std::vector<Seconds> values;
  const std::size_t skip = timers.size() > 2 * kWarmUpSteps ? kWarmUpSteps : 0;
  for (std::size_t i = skip; i < timers.size(); ++i) values.push_back(pick(timers[i]));
  return median(std::move(values));
}

Seconds most_of(const std::vector<LoggedTimer>& timers) {
  return timer_of(timers, [](const LoggedTimer& timer) { return timer.most; });
}

Seconds predicted_of(const Prediction& predicted, LogPart part) {
  Seconds time;
  for (const StepTerm term : kStepTerms) {
    if (log_part(term) == part) time += time_of(predicted, term);
  }
  return time;
}

struct Gap {
  GapCause cause;
  std::string what;
  Seconds measured;
  Seconds predicted;
  Seconds excess() const { return measured - predicted; }
};

// Time of the step that no timer covers, over what the prediction leaves uncovered by the same
// terms: the host's loop between steps. Pipelines wait longer where compute is slower, so the
// prediction's idle time grows with the compute that was measured.
std::optional<Gap> gap_outside(const Prediction& predicted, Seconds step,
                               const std::vector<Gap>& gaps) {
  const bool has_compute =
      !gaps.empty() && gaps.front().what == megatron_groups().front().what;  // in their order
  if (!has_compute || gaps.front().predicted <= Seconds()) return std::nullopt;
  Gap outside{GapCause::kHostBound, "time outside of all timers", step, predicted.step};
  for (const Gap& gap : gaps) {
    outside.measured -= gap.measured;
    outside.predicted -= gap.predicted;
  }
  outside.predicted *= std::max(1.0, gaps.front().measured / gaps.front().predicted);
  return outside;
}

std::vector<Gap> gaps_of(const Prediction& predicted, const TrainingLog& log) {
  std::vector<Gap> gaps;
  for (const Group& group : megatron_groups()) {
    Gap gap{group.cause, group.what, {}, {}};
    for (const char* timer : group.timers) {
      const auto found = log.timers.find(timer);
      if (found != log.timers.end()) gap.measured += most_of(found->second);
    }
    if (gap.measured <= Seconds()) continue;
    gap.predicted = predicted_of(predicted, group.part);
    gaps.push_back(std::move(gap));
  }
  return gaps;
}

// How much more blocks the fullest pipeline rank has than the emptiest; nothing where one has none.
std::optional<double> unevenness(const Plan& plan) {
  const auto stages = static_cast<std::size_t>(plan.degrees.pp);
  std::vector<std::int64_t> blocks(stages);
  for (std::size_t chunk = 0; chunk < plan.stage_layers.size(); ++chunk) {
    blocks[chunk % stages] += plan.stage_layers[chunk];
  }
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
  if (*least == 0) return std::nullopt;
  return static_cast<double>(*most) / static_cast<double>(*least);
}

// Compute that differs between ranks by more than stages do: the slowest holds up the others.
std::vector<Finding> slow_ranks(const Plan& plan, const TrainingLog& log) {
  const std::optional<double> uneven = unevenness(plan);
  if (!uneven) return {};
  for (const char* timer : {"forward-compute", "backward-compute"}) {
    const auto found = log.timers.find(timer);
    if (found == log.timers.end()) continue;
    const Seconds least = timer_of(found->second, [](const LoggedTimer& row) { return row.least; });
    const Seconds most = most_of(found->second);
    if (least > Seconds() && most > kSlowRank * *uneven * least) {
      return {{GapCause::kStraggler, fmt::format("{} takes {} on one rank and {} on another", timer,
                                                 to_string(most), to_string(least))}};
    }
  }
  return {};
}

std::vector<Finding> unsteady_steps(const std::vector<Seconds>& steps, Seconds middle) {
  const auto slow = std::count_if(steps.begin(), steps.end(),
                                  [&](Seconds step) { return step > kSlowStep * middle; });
  if (static_cast<double>(slow) < kManySlow * static_cast<double>(steps.size()) || slow < 2)
    return {};
  return {{GapCause::kStraggler, fmt::format("{} of {} steps take more than {} times the median",
                                             slow, steps.size(), kSlowStep)}};
}

// A log without timers, and what its program can record instead.
const char* no_timers_text(LogProgram program) {
  switch (program) {
    case LogProgram::kMegatron:
      return "the log has no timers of its phases; --timing-log-level 2 prints them";
    case LogProgram::kTorchTitan:
      return "torchtitan prints no timers of its phases; switch its profiler on "
             "(enable_profiling) and give the trace to tpsim check-log";
    case LogProgram::kNemo:
      return "NeMo prints no timers of its phases; record a report of Nsight Systems "
             "(docs/check-log.md) and give it to tpsim check-log";
    case LogProgram::kUnknown: break;
  }
  return "the log has no timers of its phases; record a trace of torch.profiler and give it to "
         "tpsim check-log";
}

std::vector<Finding> explained_gap(const Plan& plan, const Prediction& predicted,
                                   const TrainingLog& log, Seconds measured) {
  const Seconds missing = measured - predicted.step;
  std::vector<Finding> findings = slow_ranks(plan, log);
  std::vector<Gap> gaps = gaps_of(predicted, log);
  // A slow rank makes the others wait, inside their timers and outside.
  if (const auto outside = gap_outside(predicted, measured, gaps); outside && findings.empty()) {
    gaps.push_back(*outside);
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap& a, const Gap& b) { return a.excess() > b.excess(); });
  for (const Gap& gap : gaps) {
    // A tenth of what is missing is noise beside the main cause.
    if (gap.excess() < 0.1 * missing) break;
    findings.push_back({gap.cause, fmt::format("{}: {} in place of {}", gap.what,
                                               to_string(gap.measured), to_string(gap.predicted))});
  }
  if (findings.empty()) {
    findings.push_back({GapCause::kUnexplained, gaps.empty() ? no_timers_text(log.program)
                                                             : "no timer exceeds its prediction"});
  }
  return findings;
}

// A rate is a time too, of so many tokens.
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

// Logs round batches to three digits: "1.02K" are 1,024 sequences.
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
    return bad_input(fmt::format("the log's steps have {} sequences, the plan's {}",
                                 log.steps.back().global_batch, plan.global_batch),
                     "", "give the plan that is running, or a log past its batch ramp");
  }
  usable.other_batch = std::ssize(log.steps) - std::ssize(steps);
  if (steps.size() > 2 * kWarmUpSteps) {
    steps.erase(steps.begin(), steps.begin() + kWarmUpSteps);
    usable.warm_up = kWarmUpSteps;
  }
  return usable;
}

// What says that the run itself is not as it should be, before any time.
void judge_run(const TrainingLog& log, LogCheck& check) {
  check.nan_losses = log.nan_losses;
  check.skipped = log.skipped;
  const auto steps = static_cast<std::int64_t>(log.steps.size());
  check.iterations = std::max(log.iterations, steps);
  if (log.nan_losses > 0) {
    check.findings.push_back(
        {GapCause::kUnsound, fmt::format("the loss of {} of {} steps is no number",
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

// No GPU is faster than its peak, neither as the log counts nor as its steps are counted here.
void judge_rates(const Scenario& scenario, const Plan& plan, const Prediction& predicted,
                 const TrainingLog& log, LogCheck& check) {
  check.model_tflops = predicted.model_tflops_per_gpu * (predicted.step / check.measured);
  if (!log.tflops.empty()) check.logged_tflops = upper_median(log.tflops);
  const auto& device = scenario.profile.device;
  const FlopsPerSecond widest =
      plan.precision == Precision::kNone
          ? device.matmul_peak
          : std::max({device.matmul_peak, device.fp8_peak, device.mxfp8_peak, device.nvfp4_peak});
  const double peak = widest.value() / 1e12;
  check.is_possible = check.model_tflops <= peak;
  const bool counts_itself = check.logged_tflops > peak;
  if (!counts_itself && check.is_possible) return;
  check.findings.push_back(
      {GapCause::kImpossible,
       counts_itself
           ? fmt::format("the log counts {:.0f} TFLOP/s of a GPU whose peak is {:.0f}",
                         check.logged_tflops, peak)
           : fmt::format("its steps are {:.0f} TFLOP/s of a GPU whose peak is {:.0f}: is the time "
                         "that of a whole step, and the plan that which ran?",
                         check.model_tflops, peak)});
}

Bytes allocator_share(const StageMemory& memory) {
  const auto buffers = static_cast<std::size_t>(MemoryCategory::kCommunication);
  return memory.total() - memory.context - memory.by_category[buffers];
}

Result<std::vector<StageReserved>> reserved_by_stage(const Plan& plan, const Prediction& predicted,
                                                     const TrainingLog& log) {
  std::map<std::int64_t, Bytes> stages;
  for (const auto& [rank, bytes] : log.reserved) {
    if (rank >= gpu_count(plan)) {
      return bad_input(
          fmt::format("the log has a rank {}, the plan {} GPUs", rank, gpu_count(plan)), "",
          "give the plan that is running");
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
    if (row.measured <= row.predicted * (1 + kMemorySpreads * spread) &&
        row.measured >= row.predicted * (1 - kMemorySpreads * spread)) {
      continue;
    }
    check.memory_as_predicted = false;
    check.findings.push_back(
        {GapCause::kMemory, fmt::format("stage {} reserved {} in place of {}", row.stage,
                                        to_string(row.measured), to_string(row.predicted))});
  }
}

// Of the last half: a router settles in the first.
double settled(std::vector<double> values) {
  if (values.empty()) return -1;
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return upper_median(std::move(values));
}

// With scores in proportion to the tokens that follow them the loss is 1 + the square of the
// shares' standard deviation over their mean.
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
        {GapCause::kFaster,
         fmt::format("{} in place of {}", to_string(check.measured), to_string(check.predicted))});
  }
  for (Finding& finding : unsteady_steps(steps, check.measured)) {
    check.findings.push_back(std::move(finding));
  }
  TPSIM_TRY(check.memory, reserved_by_stage(plan, predicted, log));
  judge_memory(scenario.stack.memory.spread, check);
  return check;
}

}  // namespace tpsim
