// Closed form for one plan: the exact peak memory, and a lower bound of the step for its layout.
//
// The search evaluates every plan, so that work is cached by how often its inputs change. Layers
// are traced and priced once per family of plans that share them, chunks once per number of blocks.
// A plan then costs some hundred additions over its few kinds of stages. Nothing is simulated.
#pragma once

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/layers/step_end.h"
#include "sim/memory/stage_memory.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// Fast if consecutive calls differ in few settings. Plans are given without stage_layers; `cut`
// replaces them and must outlive the bounds.
class PlanBounds {
 public:
  explicit PlanBounds(LayerPricer& pricer) : pricer_(pricer) {}

  struct Value {
    Bytes peak;    // of the fullest stage
    Seconds step;  // at most step_cost(); without a pipeline equal to it, except for rounding
    Seconds busy;  // device time of the pipeline, mean over stages; exact
  };
  // Stops at the first stage above `limit`. `peak` is then the known need of that stage: above the
  // limit, but possibly below the true peak. `step` and `busy` are then zero.
  Value evaluate(const Plan& plan, const StageCut& cut, Bytes limit);
  // Computes `step` and `busy` for any peak.
  Value times(const Plan& plan, const StageCut& cut);
  // Whether offloaded state fits into host memory.
  bool fits_hosts(const Plan& plan, const StageCut& cut);
  bool fits(const Plan& plan, const StageCut& cut, Bytes limit);
  // For Recompute::kBlocks: plans with fewer recomputed blocks per chunk cannot fit.
  std::int64_t least_recomputed_blocks(const Plan& plan, const StageCut& cut, Bytes limit);

 private:
  struct Chunk {
    // Number of the family that the costs are for; another number: not computed.
    std::uint32_t memory_of = 0, times_of = 0;
    ChunkMemory memory;
    ChunkTimes times;
    PassTimes pass;  // on a stage with `pass_among` chunks; 0: not computed
    std::int64_t pass_among = 0;
  };
  // Costs that depend only on chunk_key().
  struct Family {
    LayerKey key;
    std::uint32_t number = 0;                         // number of this family
    std::vector<Chunk> chunks;                        // by blocks and ends
    std::unordered_map<std::int64_t, Chunk> partial;  // by blocks, ends and recomputed blocks
  };
  struct Fixed {
    LayerKey key;
    FixedCosts of_layers;
    std::uint32_t number = 0;       // number of this key
    std::vector<std::uint32_t> of;  // number that each of `stages` is for
    std::vector<FixedCost> stages;  // totals by blocks and ends
    // The same if blocks differ, with the number that each is for.
    std::unordered_map<const StageKind*, std::pair<std::uint32_t, FixedCost>> of_stages;
  };
  // A kind of stage in the pipeline. Seconds.
  struct StageBound {
    Seconds forward, backward;  // of the first chunk and one micro-batch
    Seconds own;                // all its tasks and sends in a step
    Seconds device;             // device time of the tasks
    Seconds tail;               // from its last task to the global norm
    Seconds update;             // from the norm to the end of the step
  };
  // Cache key of moments: the stage kind, by address, and the number of micro-batches that matter.
  struct MomentsKey {
    const StageKind* stage = nullptr;
    std::int64_t micro_batches = 0;
    friend bool operator==(const MomentsKey&, const MomentsKey&) = default;
  };
  struct MomentsHash {
    std::size_t operator()(const MomentsKey& key) const noexcept {
      return std::hash<const void*>()(key.stage) * 31 + static_cast<std::size_t>(key.micro_batches);
    }
  };
  // Time until all ranks synchronize for the norm, and until the pipeline ends.
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
  const PeakMoments& moments_of(const Plan& plan, const StageCut& cut, std::size_t kind);
  Bytes stage_peak(const Plan& plan, const StageCut& cut, std::size_t kind);
  StageBound bound_of(const Plan& plan, const StageCut& cut, std::size_t kind);
  Seconds own_without_pipeline(const Plan& plan, const Chunk& chunk) const;
  Ends ends_of(const StageCut& cut) const;

  LayerPricer& pricer_;
  std::array<Family, 3> families_;  // by ZeRO around layers: none, stage 2, stage 3
  std::array<Fixed, 4> fixed_;      // by ZeRO stage
  std::unordered_map<MomentsKey, PeakMoments, MomentsHash> moments_;
  // Last result by kind of stage: the next plan often needs the same.
  std::vector<std::pair<MomentsKey, const PeakMoments*>> recent_moments_;
  std::vector<const ChunkMemory*> stage_chunks_;  // of the current stage, by kind
  Family* family_ = nullptr;                      // of the current plan
  // Costs of the current plan, by kind of stage.
  std::vector<const FixedCost*> stage_fixed_;
  std::vector<StageBound> stages_;
  TransferCost transfer_;
  MemoryOverheads overheads_;
  std::int64_t world_ = 0;  // number of GPUs for the next two
  double expected_maximum_ = 0;
  Seconds norm_;
};

}  // namespace tpsim
