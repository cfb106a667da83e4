#include "sim/memory/peak_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/memory/stage_memory.h"
#include "sim/step/simulate.h"
#include "sim/step/step.h"

namespace tpsim {
namespace {

double total_of(const MemorySample& sample) { return total(sample.bytes); }

// Samples of a stage's tensors, and the number of events up to their peak.
class SampledStage {
 public:
  void visit(const MemoryEvent& event) {
    if (count_ == 0 || event.task != task_) begin(event);
    ++count_;
    now_.time = event.time;
    now_.bytes[static_cast<std::size_t>(event.group.category)] += event.bytes;
    const double bytes = total_of(now_);
    if (bytes > total_of(highest_)) highest_ = now_;
    if (bytes <= peak_) return;
    peak_ = bytes;
    peak_count_ = count_;
  }
  MemorySamples take() {
    end_task();
    return std::move(samples_);
  }
  std::int64_t peak_count() const { return peak_count_; }

 private:
  void begin(const MemoryEvent& event) {
    if (count_ > 0 || event.task != kStepStart) end_task();
    task_ = event.task;
    highest_ = now_;
    highest_.time = event.time;
  }
  void end_task() {
    samples_.push_back(highest_);
    if (total_of(highest_) > total_of(now_)) samples_.push_back(now_);
  }

  std::size_t task_ = 0;
  std::int64_t count_ = 0, peak_count_ = 0;
  double peak_ = 0;
  MemorySample now_, highest_;  // highest_: of the task
  MemorySamples samples_;
};

// Contents of a stage's tensors after a number of events.
class Contents {
 public:
  explicit Contents(std::int64_t count) : left_(count) {}

  void visit(const MemoryEvent& event) {
    if (left_ == 0) return;
    --left_;
    task_ = event.task;
    const auto is_same = [&](const LiveMemory& one) { return one.group == event.group; };
    const auto found = std::find_if(live_.begin(), live_.end(), is_same);
    if (found == live_.end()) {
      live_.push_back({event.group, event.bytes});
    } else {
      found->bytes += event.bytes;
    }
  }
  std::size_t task() const { return task_; }
  std::vector<LiveMemory> take() {
    std::erase_if(live_, [](const LiveMemory& one) { return std::abs(one.bytes) < 1; });
    return std::move(live_);
  }

 private:
  std::int64_t left_;
  std::size_t task_ = 0;
  std::vector<LiveMemory> live_;
};

double bytes_of(const std::vector<LiveMemory>& live, MemoryCategory category) {
  double bytes = 0;
  for (const LiveMemory& one : live) {
    if (one.group.category == category) bytes += one.bytes;
  }
  return bytes;
}

// Returns what the device's memory has besides the tensors in `live`.
StageMemory overheads_of(StageMemory memory, const std::vector<LiveMemory>& live) {
  const std::array<Bytes, kMemoryCategoryCount> all = std::exchange(memory.by_category, {});
  for (const auto category : {MemoryCategory::kWorkspace, MemoryCategory::kCommunication}) {
    const auto i = static_cast<std::size_t>(category);
    memory.by_category[i] = all[i] - Bytes(bytes_of(live, category));
  }
  return memory;
}

void add_overheads(PeakMemory& peak, const StageMemory& overheads) {
  const auto add = [&](MemoryCategory category, std::string_view label, Bytes bytes) {
    if (bytes >= Bytes(1)) {
      peak.live.push_back({whole_stage(category, label), bytes.value()});
    }
  };
  const auto of = [&](MemoryCategory category) {
    return overheads.by_category[static_cast<std::size_t>(category)];
  };
  const auto workspace = MemoryCategory::kWorkspace, buffers = MemoryCategory::kCommunication;
  add(workspace, "workspace of libraries", of(workspace));
  peak.tensors = peak.total();
  add(buffers, "buffers of communicators", of(buffers));
  add(workspace, "context of the driver", overheads.context);
  add(workspace, "fragmentation", overheads.fragmentation);
}

}  // namespace

double PeakMemory::total() const {
  double bytes = 0;
  for (const LiveMemory& one : live) bytes += one.bytes;
  return bytes;
}

void visit_memory(const Scenario& scenario, const Plan& plan, std::int64_t stage,
                  const MemoryVisitor& visit) {
  const Result<Timeline> timeline = simulate_timeline(scenario, plan);
  TPSIM_CHECK(timeline.ok(), "the plan is not legal");
  LayerPricer pricer(scenario);
  walk_memory(pricer, plan, plan_costs(pricer, plan), *timeline, stage, visit);
}

StageOverStep stage_over_step(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                              const Timeline& timeline, const StageMemory& memory) {
  const auto walk = [&](auto& visitor) {
    walk_memory(pricer, plan, costs, timeline, memory.stage,
                [&](const MemoryEvent& event) { visitor.visit(event); });
  };
  SampledStage sampled;
  walk(sampled);
  Contents contents(sampled.peak_count());
  walk(contents);
  PeakMemory peak{.stage = memory.stage, .live = contents.take()};
  if (contents.task() != kStepStart) peak.task = timeline.spans[contents.task()];
  const StageMemory overheads = overheads_of(memory, peak.live);
  add_overheads(peak, overheads);
  std::stable_sort(peak.live.begin(), peak.live.end(),
                   [](const LiveMemory& a, const LiveMemory& b) { return a.bytes > b.bytes; });
  return {std::move(peak), sampled.take(), overheads};
}

Result<StepMemory> step_memory(const Scenario& scenario, const Plan& plan) {
  StepMemory step;
  TPSIM_TRY(step.timeline, simulate_timeline(scenario, plan));
  LayerPricer pricer(scenario);
  const PlanCosts costs = plan_costs(pricer, plan);
  for (const StageMemory& memory : memory_by_stage(scenario.stack, plan, costs)) {
    StageOverStep stage = stage_over_step(pricer, plan, costs, step.timeline, memory);
    step.peaks.push_back(std::move(stage.peak));
    step.samples.push_back(std::move(stage.samples));
    step.overheads.push_back(stage.overheads);
  }
  return step;
}

}  // namespace tpsim
