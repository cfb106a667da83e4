// Computes the costs of chunks and stages from the layers that a LayerPricer prices.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/schedule/pipeline.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// A layer of a chunk, and the number of such layers in a row.
struct ChunkLayer {
  LayerKind kind = LayerKind::kBlock;
  std::int64_t block = 0;   // kind of block
  bool recomputes = false;  // runs forward again in backward, with Recompute::kBlocks
  bool offloads = false;    // saved activations are offloaded to host memory
  std::int64_t count = 1;
};
// Returns whether two layers differ in their count alone.
inline bool is_same_layer(const ChunkLayer& a, const ChunkLayer& b) {
  return a.kind == b.kind && a.block == b.block && a.recomputes == b.recomputes &&
         a.offloads == b.offloads;
}
// Returns the layers of a chunk in the order of forward: embedding, blocks, those of MTP, head.
// Backward runs them in reverse.
std::vector<ChunkLayer> chunk_layers(const Scenario& scenario, const Plan& plan,
                                     const ChunkKind& kind);

// Returns the plan of the layer: with full recompute or none, if the plan recomputes some blocks.
Plan plan_of(const ChunkLayer& layer, const Plan& plan);
// Returns whether a layer's unsharded gradients stay during the backward of the next layer, while
// they are reduced.
bool layer_gradients_stay(const StackSpec& stack, const Plan& plan);

using ChunkMemory = ByTask<MemoryChange>;
// Cost of one micro-batch through a chunk, without P2P transfers.
struct ChunkCost : ChunkKind {
  ByTask<PhaseCost> tasks;
  ChunkMemory memory;
};
ChunkCost chunk_cost(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);
// Times of chunk_cost().
using ChunkTimes = ByTask<HostDeviceTime>;
ChunkTimes chunk_times(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);
// Memory of chunk_cost(); does not price the layers.
ChunkMemory chunk_memory(LayerPricer& pricer, const Plan& plan, const ChunkKind& kind);

// Costs per step of the layers of a model.
struct FixedCosts {
  std::vector<const FixedCost*> blocks;  // by kind of block
  const FixedCost *embedding = nullptr, *table = nullptr, *head_table = nullptr, *head = nullptr;
  bool head_overwrites =
      false;  // the head's GEMM overwrites the table's gradient, so the gradient is not cleared
};
FixedCosts fixed_costs(LayerPricer& pricer, const Plan& plan);
// Returns the bytes of one gradient per distinct weight shape of a block: the maximum over the
// kinds of blocks.
Bytes gradient_stand_ins(const FixedCosts& fixed);
// Returns the sum of the costs per step over all layers of a stage.
FixedCost stage_fixed(const FixedCosts& fixed, const ModelSpec& model, const StageKind& stage);

// `host` includes offloaded activations.
struct StageCost : FixedCost {
  std::vector<std::int32_t> chunks;  // indices into PlanCosts::kinds
};

// Costs of all chunks and stages of a plan. Equal chunks share one entry of `kinds`.
struct PlanCosts {
  StageCut cut;  // costs of cut.chunks are in `kinds`
  std::vector<ChunkCost> kinds;
  std::vector<StageCost> stages;
  TransferCost transfer;     // zero if pp = 1
  Bytes gradient_stand_ins;  // result of gradient_stand_ins()

  const ChunkCost& chunk(const StageCost& stage, std::size_t i) const {
    return kinds[static_cast<std::size_t>(stage.chunks[i])];
  }
};
PlanCosts plan_costs(LayerPricer& pricer, const Plan& plan);

// Returns the durations of the pipeline's tasks: device time, exposed host time, and the all-gather
// after a P2P transfer.
PipelineTimes pipeline_times(const StackSpec& stack, const PlanCosts& costs);

}  // namespace tpsim
