// Lower bounds for all plans with the same layout, micro-batch and number of chunks. The bounds use
// per-layer costs only and hold for any split into stages.
//
// A search computes this bound first and evaluates the group's plans one by one only if the bound
// does not exclude the group. Never above the bound of sim/bounds/plan_bounds.h for any plan of the
// group.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/bounds/cut_floors.h"
#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

// Bounds of plans without stage_layers. Fast if consecutive calls differ in few settings.
class GroupBounds {
 public:
  explicit GroupBounds(LayerPricer& pricer) : pricer_(pricer) {}

  // Persistent memory of the fullest stage. Traces no layer.
  Bytes least_held(const Plan& plan, const CutFloors& cuts);
  // Whether the host memory may suffice for the offloaded state of the mean stage. Traces no layer.
  bool may_fit_hosts(const Plan& plan);
  // Lower bound of the peak with a single block's activations of one micro-batch. Increases with
  // the micro-batch.
  Bytes least_of_block(const Plan& plan);
  // Peak of the first stage, including the micro-batches in flight.
  Bytes least_peak(const Plan& plan, const CutFloors& cuts);

  struct Times {
    Seconds step;
    Seconds busy;  // see PlanBounds::Value
  };
  Times least_times(const Plan& plan, const CutFloors& cuts);
  // The same from the layers alone, without the end of the step. Lays out no parameters.
  Times least_work(const Plan& plan, const CutFloors& cuts);
  // The same from CoreWork of the layers with the settings of `layers`, which may have another
  // recompute and ZeRO stage than the plan.
  Times least_core(const Plan& plan, const Plan& layers, const CutFloors& cuts);
  // Work of the mean stage, from CoreWork of the layers: a bound for every schedule and every cut.
  Times least_device(const Plan& layers);

 private:
  // Tolerance for rounding: PlanBounds sums the same times in another order.
  static constexpr double kGroupRounding = 1 - 1e-8;

  // Time of one layer for one micro-batch, in seconds.
  struct Work {
    double device = 0, host = 0;  // lower bounds
    double alone = 0;             // upper bound
    Work& operator+=(const Work& other);
  };
  struct Layer : ByTask<Work> {
    void add(const Layer& other, double count);
    void keep_forward();  // drops the other tasks
  };
  struct Layers {
    bool is_known = false;
    std::vector<Layer> blocks;  // by kind
    Layer embedding;
    Layer ends;  // embedding, head and MTP layers
    Layer all;   // the whole model
  };
  struct Left {  // saved activations in bytes
    LayerKey key;
    bool is_known = false;
    std::vector<double> blocks;   // left by forward of a block, by kind
    std::vector<double> highest;  // highest during forward of a block, by kind
    double embedding = 0;
  };
  struct Fixed {
    LayerKey key;
    bool is_known = false;
    FixedCosts of_layers;
    double held = 0;                 // persistent bytes of the whole model on the device
    double host = 0;                 // the same in host memory
    std::vector<double> block_held;  // persistent bytes of a block, by kind
  };
  // Lower bounds of the end of a step in seconds. `tail`: from a stage's last task to the global
  // norm. `update`: from the norm to the end of the step.
  struct End {
    double tail = 0, update = 0;
  };
  // Lower bounds in seconds. `fullest`: end of the last task of the stage with the most blocks.
  // `whole`: end of the last task of any stage.
  struct Pipeline {
    double fullest = 0, whole = 0;
  };

  // Layers of one TP degree, by LayerPricer::model_key(). Families of a degree share them.
  class KnownLayers {
   public:
    Layers& at(LayerPricer& pricer, const Plan& plan);

   private:
    LayerKey last_;  // layer_key() of the last plan
    Layers* recent_ = nullptr;
    std::int64_t tp_ = 0;
    std::unordered_map<LayerKey, Layers, LayerKeyHash> by_key_;
  };

  using LayerOf = Layer (*)(const LayerCost& cost);
  const Layers& known(KnownLayers& all, const Plan& plan, LayerOf reduced);
  const Layers& layers_of(const Plan& plan) { return known(layers_, plan, &layer_of); }
  void set(Layers& layers, const Plan& plan, LayerOf reduced);
  const Left& left_of(const Plan& plan);
  const Fixed& fixed_of(const Plan& plan);
  static Layer layer_of(const LayerCost& cost);
  static Layer core_layer_of(const LayerCost& cost);
  Layer block_of(const Plan& plan, std::int64_t kind, LayerOf reduced);
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
  double wire_wait_time(const Plan& plan, const TransferCost& transfer) const;
  static double busy_of(const Plan& plan, const Layers& layers);
  void set_world(const Plan& plan);
  Times times_of(const Plan& plan, const CutFloors& cuts, const Layers& layers, const Fixed* fixed);

  LayerPricer& pricer_;
  KnownLayers layers_, core_;
  std::array<Left, 3> left_;    // by ZeRO stage: below 2, stage 2, stage 3
  std::array<Fixed, 4> fixed_;  // by ZeRO stage
  std::int64_t world_ = 0;      // number of GPUs for which the next two members were computed
  double expected_maximum_ = 0;
  Seconds norm_;
};

}  // namespace tpsim
