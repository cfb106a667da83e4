// Lower bounds for all plans with the same layout, micro-batch and number of chunks, for any split
// into stages. Uses only the layers.
//
// A search computes this bound first and evaluates the group's plans one by one only if the bound
// does not exclude the group. Never above the bound of sim/bounds/plan_bounds.h for any plan of the
// group.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_costs.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// Block counts by kind that bound memory and work of one split into stages.
struct CutFloor {
  std::vector<std::int64_t> fullest;  // stage with the most blocks, the last one of several
  std::int64_t stages_ahead = 0;      // before the fullest stage
  std::vector<std::int64_t> ahead;    // in the first chunks of the stages ahead
  std::vector<std::int64_t> first;    // first stage
  friend bool operator==(const CutFloor&, const CutFloor&) = default;
};
// The same for several splits into equal numbers of stages and chunks.
struct CutFloors {
  std::vector<CutFloor> each;  // all distinct ones
  // Blocks of first chunks ahead of a stage, mean over all stages: the minimum over splits, by
  // kind.
  std::vector<double> mean_ahead;
};
CutFloors cut_floors(std::span<const StageCut> cuts, const ModelSpec& model);

// Plans are given without stage_layers. Fast if consecutive calls differ in few settings.
class GroupBounds {
 public:
  explicit GroupBounds(LayerPricer& pricer) : pricer_(pricer) {}

  // Permanent memory of the fullest stage; no layer is traced.
  Bytes least_held(const Plan& plan, const CutFloors& cuts);
  // Memory of a stage that processes one block of one micro-batch. Increases with the micro-batch.
  Bytes least_of_block(const Plan& plan);
  // Memory of the first stage, including the micro-batches in flight.
  Bytes least_peak(const Plan& plan, const CutFloors& cuts);

  struct Times {
    Seconds step;
    Seconds busy;  // see PlanBounds::Value
  };
  Times least_times(const Plan& plan, const CutFloors& cuts);

 private:
  // Work of one layer and micro-batch, in seconds.
  struct Work {
    double device = 0, host = 0;  // lower bounds
    double alone = 0;             // upper bound
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
    Layer ends;  // embedding, head and MTP layers
    Layer all;   // the whole model
  };
  struct Left {  // saved activations in bytes
    LayerKey key;
    bool is_known = false;
    std::vector<double> blocks;   // by kind
    std::vector<double> highest;  // during forward of a block
    double embedding = 0;
  };
  struct Fixed {
    LayerKey key;
    bool is_known = false;
    FixedCosts of_layers;
    double held = 0;                 // of the whole model
    std::vector<double> block_held;  // by kind
  };
  // From a stage's last task to the global norm, and from the norm to the end. Seconds.
  struct End {
    double tail = 0, update = 0;
  };
  // Until the last task of the fullest stage, and of the stages before. Seconds.
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
  // By ZeRO around layers (none, stage 2, stage 3), as in PlanBounds.
  std::array<Layers, 3> layers_;
  std::array<Left, 3> left_;
  std::array<Fixed, 4> fixed_;  // by ZeRO stage
  std::int64_t world_ = 0;      // number of GPUs for the next two
  double expected_maximum_ = 0;
  Seconds norm_;
};

}  // namespace tpsim
