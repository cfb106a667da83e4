#include "app/answers/memory_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/answers/log_text.h"
#include "core/plan/rank_layout.h"
#include "evidence/logs/log_check.h"

namespace tpsim::app {
namespace {

Result<ComparedSnapshot> compared_snapshot(const MemoryRequest& request, const StepMemory& step) {
  const Plan& plan = request.plan.run.plan;
  if (request.rank >= gpu_count(plan)) {
    return bad_input(fmt::format("the plan has no rank {}", request.rank), "--rank",
                     fmt::format("the last rank is {}", gpu_count(plan) - 1));
  }
  TPSIM_TRY(const std::string bytes, read_log_text(request.snapshot));
  ComparedSnapshot compared{request.rank, coordinates(plan, request.rank).pp, {}, {}};
  TPSIM_TRY(compared.peak, read_snapshot_peak(bytes, request.snapshot));
  const auto stage = static_cast<std::size_t>(compared.stage);
  const SnapshotPeak& peak = compared.peak;
  const Bytes tensors(step.peaks[stage].tensors);
  compared.rows = {
      {"allocated", peak.allocated, tensors},
      {"reserved", peak.reserved, allocator_share(request.plan.run.predicted.memory[stage])}};
  // A run that ends amid a step has activations among the tensors that it keeps.
  if (peak.missing == Bytes()) {
    const Bytes kept(total(step.samples[stage].front().bytes));
    compared.rows.push_back({"kept over the step", peak.kept, kept});
    compared.rows.push_back({"temporary at the peak", peak.allocated - peak.kept, tensors - kept});
  }
  return compared;
}

}  // namespace

Result<MemoryAnswer> memory_answer(const MemoryRequest& request) {
  const auto& [named, run] = request.plan;
  TPSIM_TRY(StepMemory step, step_memory(named.scenario, run.plan));
  MemoryAnswer answer;
  if (!request.snapshot.empty()) {
    TPSIM_TRY(answer.measured, compared_snapshot(request, step));
  }
  answer.peaks = std::move(step.peaks);
  return answer;
}

const PeakMemory& fullest_stage(const std::vector<PeakMemory>& peaks) {
  return *std::max_element(
      peaks.begin(), peaks.end(),
      [](const PeakMemory& a, const PeakMemory& b) { return a.total() < b.total(); });
}

}  // namespace tpsim::app
