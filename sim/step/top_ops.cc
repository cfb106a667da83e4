#include "sim/step/top_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/plan/rank_layout.h"
#include "sim/layers/expert_prices.h"
#include "sim/layers/low_precision.h"

namespace tpsim {
namespace {

// Merges calls with the same label and the same price explanation.
class WorkList {
 public:
  void add(const Label& label, std::string how, Seconds time) {
    total_ += time;
    const auto found = std::find_if(work_.begin(), work_.end(), [&](const TopOp& work) {
      return work.label == label.text && work.how == how;
    });
    if (found == work_.end()) {
      work_.push_back({label.text, std::move(how), 1, time});
    } else {
      ++found->calls;
      found->time += time;
    }
  }

  std::vector<TopOp> heaviest(std::size_t most) {
    std::stable_sort(work_.begin(), work_.end(),
                     [](const TopOp& a, const TopOp& b) { return a.time > b.time; });
    if (work_.size() > most) work_.resize(most);
    for (TopOp& work : work_) work.share = work.time / total_;
    return std::move(work_);
  }

 private:
  std::vector<TopOp> work_;
  Seconds total_;
};

// Removes the source of the constants, which reports print elsewhere.
std::string without_source(std::string how, const Profile& profile) {
  for (const std::string& source : {profile.model.source, profile.source}) {
    if (source.empty() || !how.ends_with(source)) continue;
    const std::size_t end = how.rfind("; ", how.size() - source.size());
    if (end != std::string::npos) how.resize(end);
  }
  return how;
}

void add_op(WorkList& list, const LayerPricer& pricer, const OpRecord& op) {
  const double factor = pricer.stack_factor(op);
  std::string how = without_source(pricer.ops().explain(op), pricer.scenario().profile);
  const std::string pass = name_of_pass(op);
  if (!pass.empty()) how = pass + ": " + how;
  if (factor != 1) how += fmt::format("; x {:.2f} in this stack", factor);
  list.add(op.label, std::move(how), factor * pricer.ops().price(op).time);
}

}  // namespace

std::vector<TopOp> top_ops(const LayerPricer& pricer, const Plan& plan, std::size_t most) {
  const Scenario& scenario = pricer.scenario();
  const LayerTrace trace = trace_layers(LayerKind::kBlock, with_block_kind(scenario.model, 0), plan,
                                        scenario.stack.training);
  WorkList list;
  RoundedOperands rounded(scenario, plan);
  for (std::size_t i = trace.forward; i < trace.end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    const bool between = i >= trace.forward_end && i < trace.backward;
    // Between forward and backward, the trace allocates the gradient that a step would receive.
    if (between) continue;
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      for (const OpRecord& run : rounded.ops_for(op)) add_op(list, pricer, run);
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const CollectiveRecord record = rounded.sent(trace.program.collectives[event.index]);
      const GroupPlacement group =
          place_group(plan, record.group, node_size(scenario.cluster, gpu_count(plan)));
      const Bytes bytes(static_cast<double>(record.bytes));
      list.add(record.label,
               record.group == GroupKind::kExpert
                   ? explain_dispatch(scenario, pricer.collectives(), record, group)
                   : pricer.collectives().explain(record.kind, bytes, group),
               pricer.collective(record, plan));
    }
  }
  return list.heaviest(most);
}

}  // namespace tpsim
