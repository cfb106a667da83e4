#include "evidence/runs/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/median.h"
#include "sim/memory/stage_memory.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

std::string group_of(const PublishedRun& run) {
  return fmt::format("{} {} {} {} {} {} {} {} gpus {} batch {} {}", run.layers, run.hidden,
                     run.heads, run.kv_heads, run.ffn_hidden, run.gated_ffn.value_or(false),
                     run.seq, run.vocab, run.gpus, run.global_batch, run.regime);
}

bool is_among(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

double allocated_gib(const StageMemory& stage, const RunSetup& setup) {
  // NCCL allocates its buffers outside of the framework's allocator, so "allocated" memory excludes
  // them.
  const Bytes buffers = memory_overheads(setup.scenario.stack.memory, setup.plan, Bytes()).buffers;
  const Bytes outside = stage.context + stage.fragmentation + buffers;
  return (stage.total() - outside).value() / kGiB;
}

// Returns the predicted memory in GiB, as the row defines its memory: of the first stage if the row
// states "first node", else of the fullest stage.
double memory_meant(const PublishedRun& run, const RunEnvironment& environment,
                    const RunSetup& setup, const Prediction& predicted) {
  const auto says = [&](const char* word) {
    return run.memory_kind.find(word) != std::string::npos;
  };
  const bool first_only = says("first node");
  const bool is_allocated = environment.memory == MeasuredMemory::kAllocated || says("allocated");
  double most = 0;
  for (const StageMemory& stage : predicted.memory) {
    double gib = is_allocated ? allocated_gib(stage, setup) : stage.total().value() / kGiB;
    // "reserved" memory includes the allocator's fragmentation, but not the CUDA context and NCCL's
    // buffers.
    if (!is_allocated && says("reserved")) {
      gib = allocated_gib(stage, setup) + stage.fragmentation.value() / kGiB;
    }
    most = std::max(most, gib);
    if (first_only) break;
  }
  return most;
}

double half_peak_seconds(const RunSetup& setup, const Prediction& predicted) {
  const DeviceFacts& device = setup.scenario.profile.device;
  const DType operands = product_dtype(setup.plan);
  const FlopsPerSecond peak =
      is_narrow(operands) ? matrix_peak(device, operands) : device.matmul_peak;
  constexpr double kHalf = 0.5;
  const double share = predicted.hardware_tflops_per_gpu * 1e12 / (kHalf * peak.value());
  return share * predicted.step.value();
}

double quantile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(share * last))];
}

void add_time_figures(ValidationSummary& summary, const std::vector<const RunOutcome*>& timed) {
  summary.n = static_cast<std::int64_t>(timed.size());
  if (timed.empty()) return;
  std::vector<double> sizes;
  double covered = 0;
  for (const RunOutcome* run : timed) {
    const double error = *run->error();
    sizes.push_back(std::fabs(error));
    summary.mape += std::fabs(error);
    summary.bias += error;
    summary.half_peak_mape += std::fabs(*run->half_peak_error());
    if (run->low_s <= *run->measured_step_s && *run->measured_step_s <= run->high_s) ++covered;
  }
  const auto n = static_cast<double>(timed.size());
  summary.mape /= n;
  summary.half_peak_mape /= n;
  summary.bias /= n;
  summary.interval_coverage = covered / n;
  std::sort(sizes.begin(), sizes.end());
  summary.median_ape = median(sizes);
  summary.p95_ape = quantile(sizes, 0.95);
  summary.max_ape = sizes.back();
}

bool has_same_cost(const Prediction& predicted, const Result<Prediction>& other) {
  if (!other.ok() || other->step != predicted.step) return false;
  for (std::size_t i = 0; i < predicted.memory.size(); ++i) {
    if (other->memory[i].total() != predicted.memory[i].total()) return false;
  }
  return true;
}

// Returns the stated parts and settings that differ from the usual value without any effect.
std::vector<std::string> without_effect(const PublishedRun& run, const RunSetup& setup,
                                        const Prediction& predicted) {
  std::vector<std::string> idle;
  for (const auto& [part, text] : run.parts) {
    const std::int64_t value = setup.stated_parts.at(part);
    const std::int64_t usual = setup.stack_parts.at(part);
    if (usual == value) continue;
    Scenario other = setup.scenario;
    other.stack = with_parts(std::move(other.stack), {{part, usual}});
    if (has_same_cost(predicted, simulate(other, setup.plan))) {
      idle.push_back(to_string(PartValues{{part, value}}));
    }
  }
  for (const auto& [setting, text] : run.settings) {
    Plan other = setup.plan;
    set(other, setting_of(Plan{}, setting));
    if (other == setup.plan) continue;
    if (has_same_cost(predicted, simulate(setup.scenario, other))) {
      idle.push_back(fmt::format("{}={}", name_of(setting), text));
    }
  }
  return idle;
}

// Sets the probability of running out of memory. If the row does not state recompute, no and full
// recompute are equally likely.
void set_p_oom(RunOutcome& result, const PublishedRun& stated, const RunSetup& setup,
               const Prediction& predicted) {
  result.p_oom = predicted.p_oom;
  if (!stated.recompute.empty() || setup.plan.recompute != Recompute::kNone) return;
  Plan full = setup.plan;
  full.recompute = Recompute::kFull;
  const Result<Prediction> other = simulate(setup.scenario, full);
  if (!other.ok()) return;
  result.has_open_recompute = true;
  result.p_oom = (predicted.p_oom + other->p_oom) / 2;
  result.assumed.push_back(
      fmt::format("p(OOM) of {:.2g}: the mean of {:.2g} without and {:.2g} with full recompute",
                  result.p_oom, predicted.p_oom, other->p_oom));
}

using Groups = std::map<std::string, std::vector<const RunOutcome*>>;

void add_order_figures(ValidationSummary& summary, const Groups& groups) {
  double agreement = 0, regret = 0, squares = 0;
  const auto log_error = [](const RunOutcome& run) { return std::log1p(*run.error()); };
  for (const auto& [name, rows] : groups) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = i + 1; j < rows.size(); ++j) {
        const double product = (*rows[i]->measured_step_s - *rows[j]->measured_step_s) *
                               (rows[i]->step_s - rows[j]->step_s);
        if (product == 0) continue;  // the same plan was measured twice
        ++summary.pairs;
        agreement += product > 0 ? 1 : -1;
        squares += std::pow(log_error(*rows[i]) - log_error(*rows[j]), 2);
      }
    }
    // Regret needs at least three rows, because a guess ranks a pair correctly in half of the
    // cases.
    if (rows.size() < 3) continue;
    const auto by_measured = [](const RunOutcome* a, const RunOutcome* b) {
      return *a->measured_step_s < *b->measured_step_s;
    };
    const auto by_predicted = [](const RunOutcome* a, const RunOutcome* b) {
      return a->step_s < b->step_s;
    };
    const RunOutcome* best = *std::min_element(rows.begin(), rows.end(), by_measured);
    const RunOutcome* picked = *std::min_element(rows.begin(), rows.end(), by_predicted);
    regret += *picked->measured_step_s / *best->measured_step_s - 1;
    ++summary.regret_groups;
  }
  if (summary.pairs > 0) {
    summary.kendall_tau = agreement / static_cast<double>(summary.pairs);
    summary.pair_spread = std::sqrt(squares / static_cast<double>(summary.pairs));
  }
  if (summary.regret_groups > 0) {
    summary.top1_regret = regret / static_cast<double>(summary.regret_groups);
  }
}

void add_memory_figures(ValidationSummary& summary, const RunOutcome& run) {
  constexpr double kLikely = 0.5;
  const bool expected = run.p_oom > kLikely;
  if (run.outcome == "oom") {
    ++summary.oom_total;
    if (expected) ++summary.oom_caught;
  } else if (expected) {
    ++summary.false_oom;
  }
  const std::optional<double> error = run.memory_error();
  if (!error) return;
  ++summary.memory_n;
  summary.memory_mape += std::fabs(*error);
  summary.memory_max_ape = std::max(summary.memory_max_ape, std::fabs(*error));
}

}  // namespace

std::optional<double> RunOutcome::error() const {
  if (!predicted || !measured_step_s) return std::nullopt;
  return step_s / *measured_step_s - 1;
}

std::optional<double> RunOutcome::half_peak_error() const {
  if (!predicted || !measured_step_s) return std::nullopt;
  return half_peak_s / *measured_step_s - 1;
}

std::optional<double> RunOutcome::memory_error() const {
  if (!predicted || !measured_memory_gib) return std::nullopt;
  return memory_gib / *measured_memory_gib - 1;
}

RunOutcome predict_run(RunLoader& loader, const PublishedRun& stated) {
  const PublishedRun run = loader.completed(stated);
  RunOutcome result;
  result.id = run.id;
  result.outcome = run.outcome;
  result.group = group_of(run);
  result.measured_memory_gib = run.memory_gb;
  const Result<RunSetup> setup = loader.setup(stated);
  if (!setup.ok()) {
    const Error& error = setup.error();
    result.skipped_because = error.message + (error.hint.empty() ? "" : "; " + error.hint);
    return result;
  }
  if (run.outcome == "ok") {
    if (const auto step = measured_step(run, setup->scenario.model); step.ok()) {
      result.measured_step_s = step->value();
    } else if (!run.memory_gb) {
      result.skipped_because = step.error().message;
    }
  }
  result.cluster = setup->scenario.cluster.name;
  result.stack = setup->scenario.stack.name;
  result.parts = to_string(setup->stated_parts);
  result.assumed = setup->assumed;
  const RunEnvironment& environment = *loader.environment(run);
  result.calibration = is_among(environment.calibration_rows, run.id);
  if (environment.memory_only) result.measured_step_s.reset();
  for (const ExcludedRow& aside : environment.excluded) {
    if (aside.id == run.id) result.skipped_because = aside.reason;
  }
  const Result<Prediction> predicted = simulate(setup->scenario, setup->plan);
  if (!predicted.ok()) {
    result.skipped_because = predicted.error().message;
    return result;
  }
  result.predicted = true;
  result.step_s = predicted->step.value();
  result.low_s = predicted->step_low.value();
  result.high_s = predicted->step_high.value();
  result.half_peak_s = half_peak_seconds(*setup, *predicted);
  result.memory_gib = memory_meant(run, environment, *setup, *predicted);
  if (environment.by_names) {
    set_p_oom(result, stated, *setup, *predicted);
  } else {
    result.p_oom = predicted->p_oom;
  }
  result.without_effect = without_effect(run, *setup, *predicted);
  return result;
}

ValidationSummary summarize(const std::vector<RunOutcome>& outcomes) {
  ValidationSummary summary;
  std::vector<const RunOutcome*> timed;
  Groups groups;
  for (const RunOutcome& run : outcomes) {
    if (!run.skipped_because.empty() || !run.predicted) continue;
    add_memory_figures(summary, run);
    if (!run.error()) continue;
    timed.push_back(&run);
    groups[run.group].push_back(&run);
  }
  if (summary.memory_n > 0) summary.memory_mape /= static_cast<double>(summary.memory_n);
  add_time_figures(summary, timed);
  add_order_figures(summary, groups);
  return summary;
}

std::vector<const RunOutcome*> worst_runs(const std::vector<RunOutcome>& outcomes,
                                          std::size_t most) {
  std::vector<const RunOutcome*> worst;
  for (const RunOutcome& run : outcomes) {
    if (run.error() && run.skipped_because.empty()) worst.push_back(&run);
  }
  std::sort(worst.begin(), worst.end(), [](const RunOutcome* a, const RunOutcome* b) {
    return std::fabs(*a->error()) > std::fabs(*b->error());
  });
  worst.resize(std::min(worst.size(), most));
  return worst;
}

std::vector<std::pair<std::string, std::int64_t>> skipped_runs(
    const std::vector<RunOutcome>& outcomes) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const RunOutcome& run : outcomes) {
    if (run.skipped_because.empty()) continue;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) {
      return entry.first == run.skipped_because;
    });
    if (found == counts.end()) {
      counts.emplace_back(run.skipped_because, 1);
    } else {
      ++found->second;
    }
  }
  return counts;
}

}  // namespace tpsim
