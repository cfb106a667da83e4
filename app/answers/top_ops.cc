#include "app/answers/top_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/program/op_dims.h"
#include "core/scenario/node_map.h"
#include "lowering/passes/quantization.h"
#include "sim/layers/dispatch_time.h"

namespace tpsim::app {

std::string name_of_pass(const OpRecord& op) {
  if (op.key.kind != OpKind::kCast) return "";
  const std::string type(name_of(static_cast<DType>(op.key.variant)));
  switch (static_cast<QuantizationPass>(dim_of(op.key, QuantizationDim::kPass))) {
    case QuantizationPass::kNone: return "";
    case QuantizationPass::kQuantize: return "quantized to " + type;
    case QuantizationPass::kAmax: return "amax of the tensor, for its scale";
    case QuantizationPass::kRows: return "quantized to " + type + " by rows";
    case QuantizationPass::kRowsStochastic:
      return "quantized stochastically to " + type + " by rows";
    case QuantizationPass::kHadamard:
      return "Hadamard transforms, quantized to " + type + " by columns";
    case QuantizationPass::kHadamardStochastic:
      return "Hadamard transforms, quantized stochastically to " + type + " by columns";
  }
  return "";
}

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

void add_op(WorkList& list, LayerPricer& pricer, const LoweredOp& op, double clock) {
  const double factor = pricer.time_factor(op);
  std::string how = without_source(pricer.ops().explain(op, clock), pricer.scenario().profile);
  const std::string pass = name_of_pass(op);
  if (!pass.empty()) how = pass + ": " + how;
  const double of_call = factor / std::min(1.0, op.repeats);  // below 1: passes of attention
  if (of_call != 1) how += fmt::format("; x {:.2f} in this stack", of_call);
  list.add(op.label, std::move(how), factor * pricer.op_price(op).at(clock));
}

void add_collective(WorkList& list, const LayerPricer& pricer, const LoweredCollective& record,
                    const Plan& plan) {
  const Scenario& scenario = pricer.scenario();
  const GroupPlacement group = place_group(plan, record.group, node_map(scenario, plan));
  const Bytes bytes(static_cast<double>(record.bytes));
  list.add(record.label,
           record.group == GroupKind::kExpert
               ? explain_dispatch(scenario.model.experts, pricer.collectives(), record, group)
               : pricer.collectives().explain(record.kind, bytes, group),
           record.calls * pricer.collective(record, plan));
}

}  // namespace

std::vector<TopOp> top_ops(LayerPricer& pricer, const Plan& plan, std::size_t most) {
  const LoweredLayer layer = pricer.layer_program(LayerKind::kBlock, plan);
  const double clock = pricer.layer(LayerKind::kBlock, plan).clock;
  WorkList list;
  for (const LoweredPhase& phase : layer.phases) {
    for (const LoweredEvent& event : phase.events) {
      if (event.kind == LoweredEvent::Kind::kOp) {
        add_op(list, pricer, layer.ops[event.index], clock);
      } else if (event.kind == LoweredEvent::Kind::kCollective ||
                 event.kind == LoweredEvent::Kind::kStart) {
        add_collective(list, pricer, layer.collectives[event.index], plan);
      }
    }
  }
  return list.heaviest(most);
}

}  // namespace tpsim::app
