#include "sim/step/rank_programs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tpsim {
namespace {

ProgramPart part_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kWordEmbeddings:
    case LayerKind::kHeadTable: return ProgramPart::kWordEmbeddings;
    case LayerKind::kEmbedding: return ProgramPart::kEmbedding;
    case LayerKind::kHead: return ProgramPart::kHead;
    case LayerKind::kBlock: break;
  }
  return ProgramPart::kBlock;
}

// `is_step_end`: whether the event runs once per step. `clock`: of the layer.
IssuedEvent issued(LayerPricer& pricer, const Plan& plan, const LoweredLayer& layer,
                   const LoweredEvent& event, bool is_step_end, double clock) {
  using Kind = LoweredEvent::Kind;
  switch (event.kind) {
    case Kind::kOp: {
      const LoweredOp& op = layer.ops[event.index];
      if (is_step_end) return {op, Stream::kCompute, pricer.end_op_time(op, plan)};
      const OpPrice price = pricer.op_price(op);
      return {op, Stream::kCompute, op.load * pricer.kernel_time(op, price, clock),
              name_of(price.source)};
    }
    case Kind::kStart:
    case Kind::kCollective: {
      const LoweredCollective& record = layer.collectives[event.index];
      const Seconds each =
          record.group == GroupKind::kPipeline ? Seconds() : pricer.collective(record, plan);
      return {record, stream_of(record), record.load * record.calls * each};
    }
    case Kind::kWait: return {IssuedWait{layer.collectives[event.index]}};
    case Kind::kCopy: {
      const LoweredCopy& copy = layer.copies[event.index];
      return {copy, Stream::kCompute, pricer.copy_time(copy)};
    }
    case Kind::kHost: {
      const HostWork& work = layer.host[event.index];
      return {work, Stream::kHost, work.busy};
    }
    case Kind::kAllocate:
    case Kind::kFree: break;
  }
  return {IssuedMemory{layer.allocations[event.index], event.index, event.kind == Kind::kFree}};
}

// Returns the labels of the ops that run until the wait at event `wait`, each once.
std::vector<const char*> ops_until(const LoweredLayer& layer, const LoweredPhase& phase,
                                   std::size_t wait) {
  using Kind = LoweredEvent::Kind;
  const std::uint32_t index = phase.events[wait].index;
  const bool is_carried = layer.collectives[index].is_carried;
  std::vector<const char*> labels;
  for (std::size_t i = wait; i-- > 0;) {
    const LoweredEvent& event = phase.events[i];
    if (!is_carried && event.kind == Kind::kStart && event.index == index) break;
    if (event.kind != Kind::kOp) continue;
    const char* const label = layer.ops[event.index].label.text;
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
  std::reverse(labels.begin(), labels.end());
  return labels;
}

void add_phases(PartProgram& part, LayerPricer& pricer, const Plan& plan, const LoweredLayer& layer,
                double clock = 1) {
  for (const Phase phase : all_of<Phase>()) {
    std::vector<IssuedEvent> events;
    const LoweredPhase& lowered = layer.phase(phase);
    for (std::size_t i = 0; i < lowered.events.size(); ++i) {
      const LoweredEvent& event = lowered.events[i];
      const bool is_step_end = phase >= Phase::kClearGradients;
      events.push_back(issued(pricer, plan, layer, event, is_step_end, clock));
      IssuedEvent& last = events.back();
      const auto call = static_cast<std::int64_t>(event.index) + 1;
      if (event.kind == LoweredEvent::Kind::kStart) last.call = call;
      if (auto* wait = std::get_if<IssuedWait>(&last.what)) {
        last.call = call;
        wait->hidden_by = ops_until(layer, lowered, i);
      }
    }
    if (!events.empty()) part.phases.push_back({phase, std::move(events)});
  }
}

// Returns all phases of a layer.
PartProgram layer_part(LayerPricer& pricer, const Plan& plan, LayerKind kind, std::int64_t block,
                       const PassChoice& choice) {
  PartProgram part{.part = part_of(kind), .block = block};
  add_phases(part, pricer, plan, pricer.layer_program(kind, plan, block, choice),
             pricer.layer(kind, plan, block).clock);
  add_phases(part, pricer, plan, pricer.step_end_program(kind, plan, block, choice));
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

PartProgram transfer_part(LayerPricer& pricer, const Plan& plan) {
  const Scenario& scenario = pricer.scenario();
  PartProgram part{.part = ProgramPart::kTransfer, .count = chunk_count(plan) - 1};
  add_phases(part, pricer, plan,
             as_traced({}, trace_transfer(scenario.model, plan, scenario.stack.training)));
  return part;
}

}  // namespace

PartProgram micro_batch_program(LayerPricer& pricer, const Plan& plan, LayerKind kind,
                                std::int64_t block) {
  PartProgram part{.part = part_of(kind), .block = block};
  add_phases(part, pricer, plan, pricer.layer_program(kind, plan, block),
             pricer.layer(kind, plan, block).clock);
  return part;
}

std::vector<PartProgram> rank_programs(LayerPricer& pricer, const Plan& plan,
                                       const PassChoice& choice) {
  std::vector<PartProgram> programs;
  for (const LayerKind kind : {LayerKind::kWordEmbeddings, LayerKind::kEmbedding}) {
    programs.push_back(layer_part(pricer, plan, kind, 0, choice));
  }
  for (const auto& [which, count] : block_counts(pricer.scenario().model, plan)) {
    const auto [block, is_recomputed] = which;
    const Plan run =
        plan.recompute == Recompute::kBlocks ? with_whole_recompute(plan, is_recomputed) : plan;
    PartProgram part = layer_part(pricer, run, LayerKind::kBlock, block, choice);
    part.is_recomputed = run.recompute == Recompute::kFull;
    part.count = count;
    programs.push_back(std::move(part));
  }
  programs.push_back(layer_part(pricer, plan, LayerKind::kHead, 0, choice));
  if (plan.degrees.pp > 1) programs.push_back(transfer_part(pricer, plan));
  return programs;
}

}  // namespace tpsim
