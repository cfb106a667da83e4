// Lower bounds of the memory of a group of plans.
#include <algorithm>
#include <limits>

#include "lowering/passes/step_habits.h"
#include "sim/bounds/group_bounds.h"
#include "sim/memory/stage_memory.h"
#include "sim/step/predict.h"

namespace tpsim {
namespace {

std::size_t slot_of(const LayerKey& key) {
  return key.zero < 2 ? 0 : static_cast<std::size_t>(key.zero - 1);
}

}  // namespace

const GroupBounds::Left& GroupBounds::left_of(const Plan& plan) {
  const LayerKey key = layer_key(LayerKind::kBlock, plan, pricer_.scenario());
  Left& left = left_[slot_of(key)];
  if (left.is_known && left.key == key) return left;
  left = {};
  left.key = key;
  left.is_known = true;
  struct Block {
    double left, highest;
  };
  const auto of = [&](const Plan& whole, std::int64_t kind) {
    const LayerMemory& memory = pricer_.layer_memory(LayerKind::kBlock, whole, kind);
    const MemoryChange& forward = memory[TaskKind::kForward];
    // With activation offload, a block may leave nothing on the device.
    const bool may_offload = offloaded_blocks(pricer_.scenario().stack) > 0;
    return Block{may_offload ? 0 : total(forward.left), total(forward.highest)};
  };
  for (std::int64_t kind = 0; kind < block_kind_count(pricer_.scenario().model); ++kind) {
    const bool varies = plan.recompute == Recompute::kBlocks;
    const Block block = of(varies ? with_whole_recompute(plan, true) : plan, kind);
    const Block other = varies ? of(with_whole_recompute(plan, false), kind) : block;
    left.blocks.push_back(std::min(block.left, other.left));
    left.highest.push_back(std::min(block.highest, other.highest));
  }
  left.embedding =
      total(pricer_.layer_memory(LayerKind::kEmbedding, plan)[TaskKind::kForward].left);
  return left;
}

const GroupBounds::Fixed& GroupBounds::fixed_of(const Plan& plan) {
  const LayerKey key = fixed_key(LayerKind::kWordEmbeddings, plan, pricer_.scenario());
  Fixed& fixed = fixed_[static_cast<std::size_t>(plan.zero)];
  if (fixed.is_known && fixed.key == key) return fixed;
  fixed = {};
  fixed.key = key;
  fixed.is_known = true;
  fixed.of_layers = fixed_costs(pricer_, plan);
  const ModelSpec& model = pricer_.scenario().model;
  const FixedCosts& layers = fixed.of_layers;
  for (std::size_t kind = 0; kind < layers.blocks.size(); ++kind) {
    fixed.block_held.push_back(total(layers.blocks[kind]->held));
    const auto blocks = static_cast<double>(layers_of_kind(model, static_cast<std::int64_t>(kind)));
    fixed.held += blocks * fixed.block_held.back();
    fixed.host += blocks * layers.blocks[kind]->host.value();
  }
  // Tied word embeddings on one stage share one table.
  const double heads = model.tied_embedding && plan.degrees.pp == 1 ? 0 : 1;
  fixed.held += total(layers.embedding->held) + total(layers.head->held) +
                total(layers.table->held) + heads * total(layers.head_table->held);
  fixed.host += (layers.embedding->host + layers.head->host + layers.table->host +
                 heads * layers.head_table->host)
                    .value();
  return fixed;
}

// Returns the bytes of CUDA context, workspaces and communication buffers.
double GroupBounds::memory_outside_blocks(const Plan& plan, const Fixed& fixed) const {
  const StackMemory& stack = pricer_.scenario().stack.memory;
  const MemoryOverheads overheads =
      memory_overheads(stack, plan, gradient_stand_ins(fixed.of_layers));
  return (stack.context + overheads.workspace + overheads.buffers).value();
}

Bytes GroupBounds::least_held(const Plan& plan, const CutFloors& cuts) {
  const Fixed& fixed = fixed_of(plan);
  double fullest = std::numeric_limits<double>::max();
  for (const CutFloor& cut : cuts.each) {
    double held = 0;
    for (std::size_t kind = 0; kind < cut.fullest.size(); ++kind) {
      held += static_cast<double>(cut.fullest[kind]) * fixed.block_held[kind];
    }
    fullest = std::min(fullest, held);
  }
  const double mean = fixed.held / static_cast<double>(plan.degrees.pp);
  return Bytes(kGroupRounding * (std::max(mean, fullest) + memory_outside_blocks(plan, fixed)));
}

bool GroupBounds::may_fit_hosts(const Plan& plan) {
  const Bytes mean(kGroupRounding * fixed_of(plan).host / static_cast<double>(plan.degrees.pp));
  const ClusterSpec& cluster = pricer_.scenario().cluster;
  return host_memory_of_node(cluster, plan, mean) <= cluster.host.memory;
}

// The bound is the persistent memory of a stage plus the activations of one block. It holds for
// every cut: each kind of block is in some stage, and some stage has at least an even share of all
// blocks.
Bytes GroupBounds::least_of_block(const Plan& plan) {
  if (step_habits(pricer_.scenario().stack, plan).frees_gradients)
    return {};  // gradients and activations are not in memory at the same time
  const Fixed& fixed = fixed_of(plan);
  const Left& left = left_of(plan);
  const std::int64_t layers = pricer_.scenario().model.layers;
  const std::int64_t even = (layers + plan.degrees.pp - 1) / plan.degrees.pp;
  const auto share = static_cast<double>(even);
  double most = share * *std::min_element(fixed.block_held.begin(), fixed.block_held.end()) +
                *std::min_element(left.highest.begin(), left.highest.end());
  for (std::size_t kind = 0; kind < left.highest.size(); ++kind) {
    most = std::max(most, fixed.block_held[kind] + left.highest[kind]);
  }
  return Bytes(kGroupRounding * (most + memory_outside_blocks(plan, fixed)));
}

// The bound is the persistent memory of the first stage plus its micro-batches in flight. At the
// first backward of this stage, at least min(m, pp) of the m micro-batches are in flight in all of
// its chunks.
Bytes GroupBounds::least_peak(const Plan& plan, const CutFloors& cuts) {
  if (step_habits(pricer_.scenario().stack, plan).frees_gradients) return least_held(plan, cuts);
  const Fixed& fixed = fixed_of(plan);
  const Left& left = left_of(plan);
  const auto in_flight = static_cast<double>(std::min(micro_batches(plan), plan.degrees.pp));
  const double sent = plan.degrees.pp > 1 ? pricer_.transfer(plan).bytes : 0;
  const double ends = total(fixed.of_layers.embedding->held) + total(fixed.of_layers.table->held);
  double least = std::numeric_limits<double>::max();
  for (const CutFloor& cut : cuts.each) {
    double held = ends, kept = left.embedding - sent;
    for (std::size_t kind = 0; kind < cut.first.size(); ++kind) {
      const auto blocks = static_cast<double>(cut.first[kind]);
      held += blocks * fixed.block_held[kind];
      kept += blocks * left.blocks[kind];
    }
    least = std::min(least, held + in_flight * std::max(0.0, kept));
  }
  return Bytes(kGroupRounding * (least + memory_outside_blocks(plan, fixed)));
}

}  // namespace tpsim
