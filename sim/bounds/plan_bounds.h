// A plan in closed form: its exact peak of memory, and a step that no schedule of it can beat.
//
// What the search asks of every plan, so the work is arranged by what changes how often: layers are
// traced and priced once for each family of plans that share them, chunks once for each number of
// blocks, and a plan costs some hundred additions over its few kinds of stages. Nothing is
// simulated for a plan.
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

// Quick when neighbouring calls differ in few settings. Plans are given without stage_layers: the
// cut stands for them, and must live as long as the bounds.
class PlanBounds {
 public:
  explicit PlanBounds(LayerPricer& pricer) : pricer_(pricer) {}

  struct Value {
    Bytes peak;    // of the fullest stage
    Seconds step;  // never above step_cost(); equal to it, but for rounding, without a pipeline
    Seconds busy;  // of the pipeline's time, what a device works: the mean over stages, exactly
  };
  // Stops at the first stage found above `limit`: then `peak` is what that stage is known to need,
  // above the limit but perhaps below the true peak, and `step` and `busy` are zero.
  Value evaluate(const Plan& plan, const StageCut& cut, Bytes limit);
  // `step` and `busy` alone, whatever the peak.
  Value times(const Plan& plan, const StageCut& cut);
  // Whether what is offloaded fits into the memory of the hosts.
  bool fits_hosts(const Plan& plan, const StageCut& cut);
  bool fits(const Plan& plan, const StageCut& cut, Bytes limit);
  // Of a plan that recomputes some blocks of every chunk: no lower number of them can fit.
  std::int64_t least_recomputed_blocks(const Plan& plan, const StageCut& cut, Bytes limit);

 private:
  struct Chunk {
    // Of the family that the costs are for; another number means none yet.
    std::uint32_t memory_of = 0, times_of = 0;
    ChunkMemory memory;
    ChunkTimes times;
    PassTimes pass;  // on a stage of so many chunks; 0: of none yet
    std::int64_t pass_among = 0;
  };
  // Costs that depend on chunk_key() alone.
  struct Family {
    LayerKey key;
    std::uint32_t number = 0;                         // counts the families seen
    std::vector<Chunk> chunks;                        // by blocks and ends
    std::unordered_map<std::int64_t, Chunk> partial;  // also by how many of them are recomputed
  };
  struct Fixed {
    LayerKey key;
    FixedCosts of_layers;
    std::uint32_t number = 0;       // counts the keys seen
    std::vector<std::uint32_t> of;  // of a stage's total: the number that it is for
    std::vector<FixedCost> stages;  // totals by blocks and ends
    // The same where blocks differ, with the number that each is for.
    std::unordered_map<const StageKind*, std::pair<std::uint32_t, FixedCost>> of_stages;
  };
  // A kind of stage in the pipeline. Seconds.
  struct StageBound {
    Seconds forward, backward;  // of the first chunk and one micro-batch
    Seconds own;                // all its tasks and sends in a step
    Seconds device;             // what its device works in them
    Seconds tail;               // from its last task to the global norm
    Seconds update;             // from the norm to the end of the step
  };
  // Moments are kept by what they depend on: the stage kind, in place of its number, and how many
  // micro-batches matter.
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
  // When all ranks can meet for the norm, and when the pipeline can end.
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
  std::array<Family, 3> families_;  // by how ZeRO works around layers: not, stage 2, stage 3
  std::array<Fixed, 4> fixed_;      // by ZeRO stage
  std::unordered_map<MomentsKey, PeakMoments, MomentsHash> moments_;
  // What the plans before asked for, by kind of stage: the next plan often asks for the same.
  std::vector<std::pair<MomentsKey, const PeakMoments*>> recent_moments_;
  std::vector<const ChunkMemory*> stage_chunks_;  // of the stage at hand, by kind
  Family* family_ = nullptr;                      // of the plan at hand
  // Of the plan at hand, by kind of stage.
  std::vector<const FixedCost*> stage_fixed_;
  std::vector<StageBound> stages_;
  TransferCost transfer_;
  MemoryOverheads overheads_;
  std::int64_t world_ = 0;  // GPUs that the next two are for
  double expected_maximum_ = 0;
  Seconds norm_;
};

}  // namespace tpsim
