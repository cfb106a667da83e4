// What all plans of one layout, micro-batch and number of chunks need at least, however their
// stages are cut: a bound for a group of plans at once, from its layers alone.
//
// A search asks it first, and looks at a group's plans one by one only where it does not rule them
// all out. Never above sim/bounds/plan_bounds.h of any plan of the group.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_costs.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// Of a cut, blocks by their kind: those that bound what its stages hold and do.
struct CutFloor {
  std::vector<std::int64_t> fullest;  // of the stage with most blocks, the last of several
  std::int64_t stages_ahead = 0;      // before it
  std::vector<std::int64_t> ahead;    // of the first chunks of those
  std::vector<std::int64_t> first;    // of the first stage
  friend bool operator==(const CutFloor&, const CutFloor&) = default;
};
// Of several cuts into as many stages and chunks.
struct CutFloors {
  std::vector<CutFloor> each;  // every distinct one
  // Blocks of first chunks ahead of a stage, mean over all stages: of each kind the least.
  std::vector<double> mean_ahead;
};
CutFloors cut_floors(std::span<const StageCut> cuts, const ModelSpec& model);

// Plans are given without stage_layers. Quick when neighbouring calls differ in few settings.
class GroupBounds {
 public:
  explicit GroupBounds(LayerPricer& pricer) : pricer_(pricer) {}

  // Of the fullest stage, what is held for good: no layer is traced for it.
  Bytes least_held(const Plan& plan, const CutFloors& cuts);
  // Of a stage that works on one block of one micro-batch. Grows with the micro-batch.
  Bytes least_of_block(const Plan& plan);
  // Of the first stage, with what its schedule keeps in flight.
  Bytes least_peak(const Plan& plan, const CutFloors& cuts);

  struct Times {
    Seconds step;
    Seconds busy;  // as PlanBounds::Value
  };
  Times least_times(const Plan& plan, const CutFloors& cuts);

 private:
  // Of one layer and micro-batch. Seconds.
  struct Work {
    double device = 0, host = 0;  // at least
    double alone = 0;             // at most
    Work& operator+=(const Work& other);
  };
  struct Layer {
    Work forward, backward;
    void add(const Layer& other, double count);
  };
  struct Layers {
    LayerKey key;
    bool is_known = false;
    std::vector<Layer> blocks;  // by kind
    Layer embedding;
    Layer ends;  // the embedding, the head and what predicts later tokens
    Layer all;   // the whole model
  };
  struct Left {  // in flight, bytes
    LayerKey key;
    bool is_known = false;
    std::vector<double> blocks;   // by kind
    std::vector<double> highest;  // while a block goes forward
    double embedding = 0;
  };
  struct Fixed {
    LayerKey key;
    bool is_known = false;
    FixedCosts of_layers;
    double held = 0;                 // of the whole model
    std::vector<double> block_held;  // by kind
  };
  // From a stage's last task to the norm, and from the norm on. Seconds.
  struct End {
    double tail = 0, update = 0;
  };
  // Up to the fullest stage's last task, and to the last of those before it.
  struct Pipeline {
    double fullest = 0, whole = 0;
  };

  const Layers& layers_of(const Plan& plan);
  const Left& left_of(const Plan& plan);
  const Fixed& fixed_of(const Plan& plan);
  Layer block_of(const Plan& plan, std::int64_t kind);
  bool host_runs_ahead(const Plan& plan) const;
  double host_of_chunk(const Plan& plan) const;
  double work_of(const Plan& plan, const Layer& layer) const;
  double mean_pipeline(const Plan& plan, const CutFloors& cuts, const Layers& layers,
                       const TransferCost& transfer) const;
  Pipeline by_fullest_stage(const Plan& plan, const CutFloor& cut, const Layers& layers,
                            const TransferCost& transfer) const;
  End end_of(const Plan& plan, const std::vector<std::int64_t>& blocks, const Layers& layers,
             const Fixed& fixed, const TransferCost& transfer) const;
  double memory_outside_blocks(const Plan& plan, const Fixed& fixed) const;
  double wire_wait_time(const TransferCost& transfer) const;

  LayerPricer& pricer_;
  // By how ZeRO works around layers, as in PlanBounds.
  std::array<Layers, 3> layers_;
  std::array<Left, 3> left_;
  std::array<Fixed, 4> fixed_;  // by ZeRO stage
  std::int64_t world_ = 0;      // GPUs that the next two are for
  double expected_maximum_ = 0;
  Seconds norm_;
};

}  // namespace tpsim
