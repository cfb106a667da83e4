// Explains a slow run: compares the timers of its log with the predicted times of the same phases.
#include "evidence/logs/gap_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/median.h"

namespace tpsim {
namespace {

// Compute-time ratio of the slowest to the fastest rank, after division by the ratio of their layer
// counts. A larger ratio indicates a slow GPU or node.
constexpr double kSlowRank = 1.25;

// Phases of a step that a log may time.
enum class LogPart : std::uint8_t { kBlocks, kReduction, kTransfers, kOptimizer, kDataLoading };

// Returns the part of a log whose timers cover a term; nothing if no timer does.
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

// Timers of one phase, and the cause to report if their sum exceeds the prediction.
struct Group {
  LogPart part;
  const char* what;
  GapCause cause;
  std::vector<const char*> timers;  // summed over the timers in the log
};

// Timer names of current and older Megatron-LM, and of BigScience's fork.
const std::vector<Group>& megatron_groups() {
  static const std::vector<Group> groups = {
      {LogPart::kBlocks,
       "forward and backward of the layers",
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

// Returns the median of one timer over the steps, without the first kWarmUpSteps steps if the log
// has more than twice as many.
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

// Compares the step time outside all timers with its prediction. An excess indicates a slow host
// loop between steps. The prediction of this time includes the pipeline bubble, so it is scaled up
// by the ratio of measured to predicted compute.
std::optional<Gap> gap_outside(const Prediction& predicted, Seconds step,
                               const std::vector<Gap>& gaps) {
  const bool has_compute =
      !gaps.empty() && gaps.front().what == megatron_groups().front().what;  // compute is first
  if (!has_compute || gaps.front().predicted <= Seconds()) return std::nullopt;
  Gap outside{GapCause::kHostBound, "time outside all timers", step, predicted.step};
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

// Returns the number of layers on the pipeline rank with the most layers divided by that on the
// rank with the fewest. Returns nothing if some rank has no layers.
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

// Returns a straggler finding if the forward or backward compute times of the ranks differ by more
// than kSlowRank times the ratio of their layer counts.
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

// Returns advice on what to record in the next run, for a log without per-phase timers.
const char* no_timers_text(LogProgram program) {
  switch (program) {
    case LogProgram::kMegatron:
      return "the log has no per-phase timers; --timing-log-level 2 prints them";
    case LogProgram::kTorchTitan:
      return "torchtitan prints no per-phase timers; switch its profiler on (enable_profiling) and "
             "run tpsim check-log on the trace";
    case LogProgram::kNemo:
      return "NeMo prints no per-phase timers; record a report of Nsight Systems "
             "(docs/check-log.md) and run tpsim check-log on it";
    case LogProgram::kUnknown: break;
  }
  return "the log has no per-phase timers; record a trace with torch.profiler and run tpsim "
         "check-log on it";
}

}  // namespace

std::vector<Finding> explained_gap(const Plan& plan, const Prediction& predicted,
                                   const TrainingLog& log, Seconds measured) {
  const Seconds missing = measured - predicted.step;
  std::vector<Finding> findings = slow_ranks(plan, log);
  std::vector<Gap> gaps = gaps_of(predicted, log);
  // A straggler also lengthens the time outside the timers of the other ranks, so that time is not
  // a second cause.
  if (const auto outside = gap_outside(predicted, measured, gaps); outside && findings.empty()) {
    gaps.push_back(*outside);
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap& a, const Gap& b) { return a.excess() > b.excess(); });
  for (const Gap& gap : gaps) {
    // An excess below 10 % of the total gap is treated as noise.
    if (gap.excess() < 0.1 * missing) break;
    findings.push_back({gap.cause, fmt::format("{}: {} instead of the predicted {}", gap.what,
                                               to_string(gap.measured), to_string(gap.predicted))});
  }
  if (findings.empty()) {
    findings.push_back({GapCause::kUnexplained, gaps.empty() ? no_timers_text(log.program)
                                                             : "no timer exceeds its prediction"});
  }
  return findings;
}

}  // namespace tpsim
