// Traces and prices each repeating part of a model once: block, embedding, head and word embeddings
// on one rank. Time and memory of a plan are computed from these parts.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/rank_layout.h"
#include "core/scenario/scenario.h"
#include "costs/collective_cost.h"
#include "costs/op_cost.h"
#include "lowering/passes/lower.h"
#include "lowering/trace/sized_traces.h"
#include "lowering/trace/trace.h"
#include "sim/layers/layer_cost.h"
#include "sim/layers/layer_key.h"
#include "sim/layers/layer_lanes.h"

namespace tpsim {

// The fields of an op record that OpCostModel::price() reads.
struct PricedOp {
  OpKey key;
  double flops = 0, bytes = 0;
  bool is_grouped = false;  // is_grouped_product()
  friend bool operator==(const PricedOp&, const PricedOp&) = default;
};
struct PricedOpHash {
  std::size_t operator()(const PricedOp& op) const noexcept { return std::hash<OpKey>()(op.key); }
};

// Cost models of ops and collectives for a scenario. Built once and shared by any number of
// threads.
struct PriceLists {
  // `shared_ops`: op prices of another scenario with the same profile, GPU clock and Fp32Matmul.
  // Null: builds them.
  explicit PriceLists(const Scenario& scenario,
                      std::shared_ptr<const OpCostModel> shared_ops = nullptr);

  Scenario scenario;
  std::shared_ptr<const OpCostModel> ops;
  CollectiveCostModel collectives;
};

// Returns the cost of a launch that takes `issue` on the host and `run` on the device. With
// blocking launches or a synchronous device, the host waits for the result.
HostDeviceTime launch(const Scenario& scenario, Seconds issue, Seconds run);

// Prices layers, transfers and collectives. Caches results, so it is not thread-safe. References
// stay valid.
class LayerPricer {
 public:
  explicit LayerPricer(const Scenario& scenario);
  // `verifies`: whether programs are verified after each lowering pass. Searches trust them.
  explicit LayerPricer(std::shared_ptr<const PriceLists> prices, bool verifies = true);

  // `block`: kind of block if `kind` is LayerKind::kBlock.
  const LayerCost& layer(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const LayerMemory& layer_memory(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const FixedCost& fixed(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const TransferCost& transfer(const Plan& plan);
  // Returns when layer() runs each kernel and collective.
  LayerLanes lanes(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  // Return the programs that layer() and fixed() price, after the chosen passes.
  LoweredLayer layer_program(LayerKind kind, const Plan& plan, std::int64_t block = 0,
                             const PassChoice& choice = {});
  LoweredLayer step_end_program(LayerKind kind, const Plan& plan, std::int64_t block = 0,
                                const PassChoice& choice = {}) const;
  // Returns a key with which all layers of a plan have equal costs. `key`: layer_key() of its
  // blocks.
  LayerKey model_key(LayerKey key, const Plan& plan);
  // Returns the time of the all-reduce of the squared gradient norm; zero if gradients are not
  // clipped.
  Seconds global_norm(const Plan& plan);
  // Returns the cost of delayed scaling at the end of a chunk's forward or backward: the ranks of a
  // stage all-reduce the amax values and compute new scales. Zero for other recipes.
  PhaseCost scale_exchange(const Plan& plan, std::int64_t blocks) const;
  // Drops programs of layers that have not been priced yet.
  void drop_programs();

  // Returns the time of one call in the plan's group. A P2P transfer counts at the sender only.
  Seconds collective(const LoweredCollective& record, const Plan& plan) const;

  // Returns the device time of an op's kernels divided by the time of the profile's kernel, without
  // the floor of launch latencies and without the load of the busiest rank.
  double time_factor(const LoweredOp& op) const;
  // Returns the price of one kernel of the profile's kind.
  OpPrice op_price(const OpRecord& op);
  // Returns the device time of all kernels of an op at the clock of its layer, on a rank with the
  // mean number of tokens. `price`: op_price(op).
  Seconds kernel_time(const LoweredOp& op, const OpPrice& price, double clock) const;
  Seconds copy_time(const LoweredCopy& copy) const;
  // Returns the time of an op at the end of a step.
  Seconds end_op_time(const LoweredOp& op, const Plan& plan);
  // Time of a copy over the link of a GPU's host, and of passes over host memory.
  Seconds host_time(Bytes copied, Bytes passed) const;

  const Scenario& scenario() const { return prices_->scenario; }
  const OpCostModel& ops() const { return *prices_->ops; }
  const CollectiveCostModel& collectives() const { return prices_->collectives; }
  const std::shared_ptr<const PriceLists>& prices() const { return prices_; }

 private:
  // Program and memory of a layer, which do not depend on the placement of groups.
  struct Traced {
    std::shared_ptr<const LoweredLayer> program;
    LayerMemory memory;
  };
  struct Layer : Traced {  // keeps its program until priced
    std::optional<LayerCost> cost;
  };
  const ModelSpec& model_of(std::int64_t block) const {
    return models_[static_cast<std::size_t>(block)];
  }
  LayerKey key_of(LayerKind kind, const Plan& plan, std::int64_t block);
  LayerKey end_key(LayerKind kind, const Plan& plan, std::int64_t block) const;
  LayerKey placed_key(const LayerKey& key, const Plan& plan, bool has_experts);
  std::int64_t placement_number(const LayerKey& key, const Plan& plan, bool has_experts);
  const LayerTrace& sized_trace(const LayerKey& key, const Plan& plan, std::int64_t block);
  Layer& traced_layer(LayerKind kind, const Plan& plan, std::int64_t block);
  Traced trace_layer(LayerKind kind, const Plan& plan, std::int64_t block);
  std::vector<OpPrice> op_prices(const LoweredLayer& layer);
  LayerCost price_layer(const LoweredLayer& layer, const std::vector<OpPrice>& prices,
                        const Plan& plan, double clock, StepClock* clocked);
  LayerCost price_layer(const LoweredLayer& layer, const Plan& plan);
  // Returns the time of memory-bound kernels that read and write `moved` bytes in total.
  Seconds streaming_time(Bytes moved) const;
  Bytes distinct_weights(const FixedCost& fixed, const Plan& plan, std::int64_t block) const;
  void add_weight_copies(FixedCost& fixed, const Plan& plan) const;
  StepEndCost price_end(const LoweredLayer& layer, const Plan& plan);
  TransferCost price_transfer(const Program& program, const Plan& plan) const;

  // Returns place_group() on the cluster's nodes. Remembers the last placement of each kind.
  const GroupPlacement& placed(const Plan& plan, GroupKind group) const;

  struct Placed {
    ParallelDegrees degrees{0, 0, 0, 0, 0};
    RankOrder rank_order{};
    GroupPlacement placement;
  };
  mutable std::array<Placed, kGroupKindCount> placed_;
  // Distinct placements of the groups that communicate in layers without sharded weights.
  std::vector<std::array<GroupPlacement, 4>> placements_;
  std::unordered_map<LayerKey, std::int64_t, LayerKeyHash> placement_numbers_;
  std::shared_ptr<const PriceLists> prices_;
  bool verifies_;
  std::vector<ModelSpec> models_;  // with_block_kind() by kind of block
  std::unordered_map<PricedOp, OpPrice, PricedOpHash> op_prices_;
  LayerCache<Layer> layers_;
  // Layers whose program is kept for pricing.
  std::vector<Layer*> unpriced_;
  std::unordered_map<LayerKey, Traced, LayerKeyHash> traced_;  // for traced_micro_batch_
  std::int64_t traced_micro_batch_ = 0;
  // For traced_tp_, shared by the recompute settings with equal traces.
  std::unordered_map<LayerKey, SizedTraces, LayerKeyHash> sized_traces_;
  std::int64_t traced_tp_ = 0;
  LayerCache<FixedCost> fixed_;
  LayerCache<LayerTrace> transfer_traces_;
  LayerCache<TransferCost> transfers_;
};

}  // namespace tpsim
