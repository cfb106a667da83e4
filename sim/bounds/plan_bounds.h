// Closed form for one plan and stage cut: the exact peak memory, and a lower bound of the step.
//
// The search evaluates every plan, so work is cached by how often its inputs change. Layers are
// traced and priced once per family of plans, chunks once per number of blocks. A plan then costs
// some hundred additions over its few kinds of stages. Nothing is simulated.
#pragma once

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/layers/pass_times.h"
#include "sim/memory/stage_memory.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// Plans are given without stage_layers; `cut` replaces them and must outlive the PlanBounds. Fast
// if consecutive calls differ in few settings.
class PlanBounds {
 public:
  explicit PlanBounds(LayerPricer& pricer) : pricer_(pricer) {}

  struct Value {
    Bytes peak;    // peak memory of the stage that needs the most
    Seconds step;  // never above step_cost()
    Seconds busy;  // exact device time of the tasks, mean over stages
  };
  // Stops at the first stage whose peak exceeds `limit`. `peak` is then a value above the limit, at
  // most the true peak; `step` and `busy` are zero.
  Value evaluate(const Plan& plan, const StageCut& cut, Bytes limit);
  // Computes `step` and `busy` without computing the peak.
  Value times(const Plan& plan, const StageCut& cut);
  // Returns whether the offloaded state fits in host memory.
  bool fits_hosts(const Plan& plan, const StageCut& cut);
  bool fits(const Plan& plan, const StageCut& cut, Bytes limit);
  // For Recompute::kBlocks: returns a number of recomputed blocks per chunk below which no plan
  // fits.
  std::int64_t least_recomputed_blocks(const Plan& plan, const StageCut& cut, Bytes limit);

 private:
  struct Chunk {
    // Family::number for which `memory` and `times` were computed; any other value: not computed.
    std::uint32_t memory_of = 0, times_of = 0;
    ChunkMemory memory;
    ChunkTimes times;
    PassTimes pass;  // `times` on a stage with `pass_among` chunks; 0: not computed
    std::int64_t pass_among = 0;
  };
  // Costs of chunks that depend only on chunk_key(), for the last key.
  struct Family {
    LayerKey key;
    std::uint32_t number = 0;  // counts the keys; never 0 if `key` is set
    // By first layer, number of blocks, and embedding and head.
    std::vector<Chunk> chunks;
    std::unordered_map<std::int64_t, Chunk> partial;  // the same index, and recomputed blocks
  };
  struct Fixed {
    LayerKey key;
    FixedCosts of_layers;
    std::uint32_t number = 0;       // counts the keys
    std::vector<std::uint32_t> of;  // `number` for which each element of `stages` was computed
    std::vector<FixedCost> stages;  // totals by number of blocks, embedding and head
    // Totals if the model has several kinds of blocks, with the number they were computed for.
    std::unordered_map<const StageKind*, std::pair<std::uint32_t, FixedCost>> of_stages;
  };
  // Times of a kind of stage in the pipeline.
  struct StageBound {
    PassTimes first;  // of its first chunk, with the gathers of received tensors
    Seconds own;      // all tasks and sends of the stage in a step
    Seconds device;   // device time of the tasks
    Seconds tail;     // from the last task to the global norm
    Seconds update;   // from the norm to the end of the step
  };
  // Cache key of moments: the kind of stage, by address, the stage if the backward is split, and
  // the number of micro-batches up to which more of them change the peak
  // (PeakMoments::deciding_micro_batches()).
  struct MomentsKey {
    const StageKind* stage = nullptr;
    std::int64_t split_stage = -1;
    std::int64_t micro_batches = 0;
    friend bool operator==(const MomentsKey&, const MomentsKey&) = default;
  };
  struct MomentsHash {
    std::size_t operator()(const MomentsKey& key) const noexcept {
      return std::hash<const void*>()(key.stage) * 31 +
             static_cast<std::size_t>(key.micro_batches + 997 * key.split_stage);
    }
  };
  // Time until all ranks synchronize for the global norm, and until the pipeline ends.
  struct Ends {
    Seconds meeting, pipeline;
  };

  Family& family_of(const Plan& plan);
  Chunk& chunk_of(Family& family, const Plan& plan, const ChunkKind& kind) const;
  const ChunkMemory& memory_of(const Plan& plan, const ChunkKind& kind);
  Chunk& times_of(const Plan& plan, const ChunkKind& kind);
  const PassTimes& pass_of(Chunk& chunk, std::int64_t chunks) const;
  Fixed& fixed_of(const Plan& plan);
  const FixedCost& stage_total(Fixed& fixed, const StageKind& stage) const;
  void prepare(const Plan& plan, const StageCut& cut);
  Bytes peak(const Plan& plan, const StageCut& cut, Bytes limit);
  Seconds step(const Plan& plan, const StageCut& cut);
  Seconds mean_busy(const Plan& plan, const StageCut& cut) const;
  const PeakMoments& moments_of(const Plan& plan, const StageKind& kind, std::int64_t stage,
                                std::size_t slot);
  Bytes stage_peak(const Plan& plan, const StageCut& cut, std::size_t kind, std::int64_t stage);
  StageBound bound_of(const Plan& plan, const StageCut& cut, std::size_t kind);
  StepEndCost end_of_first_layer(const Plan& plan, const StageCut& cut,
                                 const StageKind& stage) const;
  Seconds own_without_pipeline(const Plan& plan, const Chunk& chunk) const;
  Ends ends_of(const Plan& plan, const StageCut& cut) const;

  LayerPricer& pricer_;
  std::array<Family, 3> families_;  // by ZeRO stage: below 2, stage 2, stage 3
  std::array<Fixed, 4> fixed_;      // by ZeRO stage
  std::unordered_map<MomentsKey, PeakMoments, MomentsHash> moments_;
  // Last result by kind of stage, since the next plan often needs the same one.
  std::vector<std::pair<MomentsKey, const PeakMoments*>> recent_moments_;
  std::vector<const ChunkMemory*> stage_chunks_;  // chunks of the current stage
  Family* family_ = nullptr;                      // family of the current plan
  // Costs of the current plan, by kind of stage.
  std::vector<const FixedCost*> stage_fixed_;
  std::vector<StageBound> stages_;
  TransferCost transfer_;
  MemoryOverheads overheads_;
  std::int64_t world_ = 0;  // number of GPUs for which the next two members were computed
  double expected_maximum_ = 0;
  Seconds norm_;
};

}  // namespace tpsim
