#include "sim/step/rank_programs.h"

#include <map>
#include <utility>

#include "sim/layers/expert_prices.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/plain_kernels.h"
#include "sim/layers/recomputed_ops.h"

namespace tpsim {
namespace {

LayerKind layer_of(ProgramPart part) {
  switch (part) {
    case ProgramPart::kWordEmbeddings: return LayerKind::kWordEmbeddings;
    case ProgramPart::kEmbedding: return LayerKind::kEmbedding;
    case ProgramPart::kHead: return LayerKind::kHead;
    case ProgramPart::kBlock:
    case ProgramPart::kTransfer: break;
  }
  return LayerKind::kBlock;
}

// Collects the events of one phase.
class PhaseEvents {
 public:
  PhaseEvents(const Scenario& scenario, const Plan& plan)
      : scenario_(scenario), plan_(plan), rounded_(scenario, plan) {}

  // Adds an op, with quantization passes for linear layers.
  void add_rounded(const OpRecord& op) {
    for (const OpRecord& run : rounded_.ops_for(op)) add_op(run);
  }
  void add_rounded(const Program& program, const ProgramEvent& event) {
    switch (event.kind) {
      case ProgramEvent::Kind::kOp: return add_rounded(program.ops[event.index]);
      case ProgramEvent::Kind::kCollective:
        events_.emplace_back(rounded_.sent(program.collectives[event.index]));
        return;
      case ProgramEvent::Kind::kAllocate:
      case ProgramEvent::Kind::kFree: return add_memory(program, event);
    }
  }
  // Adds an event at the end of a step or of a P2P transfer, without quantization.
  void add_plain(const Program& program, const ProgramEvent& event) {
    switch (event.kind) {
      case ProgramEvent::Kind::kOp: return add_op(program.ops[event.index]);
      case ProgramEvent::Kind::kCollective:
        events_.emplace_back(as_gathered(program.collectives[event.index], plan_));
        return;
      case ProgramEvent::Kind::kAllocate:
      case ProgramEvent::Kind::kFree: return add_memory(program, event);
    }
  }

  std::vector<IssuedEvent> take() { return std::move(events_); }

 private:
  void add_op(const OpRecord& op) {
    if (is_left_to_dispatcher(op, scenario_.stack)) return;
    const PlainKernel kernel = plain_kernel(op, scenario_.stack, scenario_.model.activation_ops);
    events_.emplace_back(IssuedOp{op, kernel.launches});
  }
  void add_memory(const Program& program, const ProgramEvent& event) {
    events_.emplace_back(IssuedMemory{program.allocations[event.index], event.index,
                                      event.kind == ProgramEvent::Kind::kFree});
  }

  const Scenario& scenario_;
  const Plan& plan_;
  RoundedOperands rounded_;
  std::vector<IssuedEvent> events_;
};

void add_phase(PartProgram& part, ProgramPhase phase, std::vector<IssuedEvent> events) {
  if (!events.empty()) part.phases.push_back({phase, std::move(events)});
}

std::vector<IssuedEvent> events_again(const Scenario& scenario, const Plan& plan,
                                      const LayerTrace& trace) {
  const RecomputedWork again = recomputed_work(trace, plan, scenario.stack.parts);
  PhaseEvents modules(scenario, plan);
  for (const ProgramEvent& event : again.modules) modules.add_rounded(trace.program, event);
  std::vector<IssuedEvent> events = modules.take();
  PhaseEvents ops(scenario, plan);
  for (const OpRecord& op : again.ops) ops.add_rounded(op);
  for (const IssuedEvent& event : ops.take()) events.push_back(event);
  return events;
}

void add_micro_batch(PartProgram& part, const LayerPricer& pricer, const Plan& plan) {
  const LayerTrace trace = pricer.layer_program(layer_of(part.part), plan, part.block);
  const auto events = [&](Phase phase) {
    PhaseEvents all(pricer.scenario(), plan);
    const auto [begin, end] = trace.span(phase);
    for (std::size_t i = begin; i < end; ++i) {
      all.add_rounded(trace.program, trace.program.events[i]);
    }
    return all.take();
  };
  add_phase(part, ProgramPhase::kForward, events(Phase::kForward));
  if (part.part == ProgramPart::kBlock) {
    add_phase(part, ProgramPhase::kRecompute, events_again(pricer.scenario(), plan, trace));
  }
  add_phase(part, ProgramPhase::kBackward, events(Phase::kBackward));
  add_phase(part, ProgramPhase::kAccumulate, events(Phase::kAccumulate));
}

std::vector<IssuedEvent> plain_events(const Scenario& scenario, const Plan& plan,
                                      const Program& program, std::size_t begin, std::size_t end) {
  PhaseEvents all(scenario, plan);
  for (std::size_t i = begin; i < end; ++i) all.add_plain(program, program.events[i]);
  return all.take();
}

void add_step_end(PartProgram& part, const LayerPricer& pricer, const Plan& plan) {
  const StepEndTrace trace = pricer.step_end_program(layer_of(part.part), plan, part.block);
  const auto events = [&](std::size_t begin, std::size_t end) {
    return plain_events(pricer.scenario(), plan, trace.program, begin, end);
  };
  add_phase(part, ProgramPhase::kClearGradients, events(trace.clear, trace.reduce));
  add_phase(part, ProgramPhase::kUpdate, events(trace.reduce, trace.end));
  add_phase(part, ProgramPhase::kAllocate, events(0, trace.clear));
}

PartProgram layer_part(PartProgram part, const LayerPricer& pricer, const Plan& plan) {
  add_micro_batch(part, pricer, plan);
  add_step_end(part, pricer, plan);
  return part;
}

// Number of blocks by kind of block and whether the block is recomputed.
using BlockCounts = std::map<std::pair<std::int64_t, bool>, std::int64_t>;
BlockCounts block_counts(const ModelSpec& model, const Plan& plan) {
  BlockCounts counts;
  std::int64_t layer = 0;
  for (const std::int64_t blocks : plan.stage_layers) {
    const std::int64_t again = recomputed_blocks(plan, blocks);
    for (std::int64_t i = 0; i < blocks; ++i) ++counts[{block_kind(model, layer++), i < again}];
  }
  return counts;
}

PartProgram transfer_part(const LayerPricer& pricer, const Plan& plan) {
  const Scenario& scenario = pricer.scenario();
  const TransferTrace trace = trace_transfer(scenario.model, plan, scenario.stack.training);
  PartProgram part{.part = ProgramPart::kTransfer, .count = chunk_count(plan) - 1};
  const auto events = [&](std::size_t begin, std::size_t end) {
    return plain_events(scenario, plan, trace.program, begin, end);
  };
  add_phase(part, ProgramPhase::kSend, events(0, trace.receive));
  add_phase(part, ProgramPhase::kReceive, events(trace.receive, trace.program.events.size()));
  return part;
}

}  // namespace

std::vector<PartProgram> rank_programs(const LayerPricer& pricer, const Plan& plan) {
  std::vector<PartProgram> programs;
  for (const ProgramPart part : {ProgramPart::kWordEmbeddings, ProgramPart::kEmbedding}) {
    programs.push_back(layer_part({.part = part}, pricer, plan));
  }
  for (const auto& [which, count] : block_counts(pricer.scenario().model, plan)) {
    const auto [block, is_recomputed] = which;
    const Plan run =
        plan.recompute == Recompute::kBlocks ? with_whole_recompute(plan, is_recomputed) : plan;
    programs.push_back(layer_part({.part = ProgramPart::kBlock,
                                   .block = block,
                                   .is_recomputed = run.recompute == Recompute::kFull,
                                   .count = count},
                                  pricer, run));
  }
  programs.push_back(layer_part({.part = ProgramPart::kHead}, pricer, plan));
  if (plan.degrees.pp > 1) programs.push_back(transfer_part(pricer, plan));
  return programs;
}

}  // namespace tpsim
