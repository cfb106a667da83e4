// Traces and prices each repeating part of a model once: block, embedding, head and word embeddings
// on one rank. Time and memory of a plan are computed from these parts.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "costs/collective_cost.h"
#include "costs/op_cost.h"
#include "sim/layers/context_ring.h"
#include "sim/layers/layer_cost.h"
#include "sim/layers/layer_key.h"
#include "sim/trace/trace.h"

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
  explicit LayerPricer(std::shared_ptr<const PriceLists> prices);

  // `block`: kind of block if `kind` is LayerKind::kBlock.
  const LayerCost& layer(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const LayerMemory& layer_memory(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const FixedCost& fixed(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const TransferCost& transfer(const Plan& plan);
  // Return the traces that layer() and fixed() price.
  LayerTrace layer_program(LayerKind kind, const Plan& plan, std::int64_t block = 0) const;
  StepEndTrace step_end_program(LayerKind kind, const Plan& plan, std::int64_t block = 0) const;
  // Returns the time of the all-reduce of the squared gradient norm; zero if gradients are not
  // clipped.
  Seconds global_norm(const Plan& plan);
  // Returns the cost of delayed scaling at the end of a chunk's forward or backward: the ranks of a
  // stage all-reduce the amax values and compute new scales. Zero for other recipes.
  PhaseCost scale_exchange(const Plan& plan, std::int64_t blocks) const;
  // Drops traces of layers that have not been priced yet.
  void drop_traces();

  // Returns the time of one call in the plan's group. A P2P transfer counts at the sender only.
  Seconds collective(const CollectiveRecord& record, const Plan& plan) const;

  // Returns the time of an op with this software divided by the time of the profile's kernel.
  double stack_factor(const OpRecord& op) const;

  const Scenario& scenario() const { return prices_->scenario; }
  const OpCostModel& ops() const { return *prices_->ops; }
  const CollectiveCostModel& collectives() const { return prices_->collectives; }
  const std::shared_ptr<const PriceLists>& prices() const { return prices_; }

 private:
  // Trace and memory of a layer, which do not depend on the placement of groups.
  struct Traced {
    std::shared_ptr<const LayerTrace> trace;
    LayerMemory memory;
  };
  struct Layer : Traced {  // keeps its trace until priced
    std::optional<LayerCost> cost;
  };
  LayerKey key_of(LayerKind kind, const Plan& plan, std::int64_t block) const;
  Layer& traced_layer(LayerKind kind, const Plan& plan, std::int64_t block);
  LayerTrace traced_program(LayerKind kind, const LayerKey& key, const Plan& plan,
                            std::int64_t block) const;
  Traced trace_layer(LayerKind kind, const LayerKey& key, const Plan& plan, std::int64_t block);
  // Host time per block besides launches, for forward and backward.
  struct HostOfBlock {
    Seconds forward, backward;
  };
  HostOfBlock host_of_block(const Plan& plan, std::int64_t block) const;
  double modules_of(const Plan& plan, std::int64_t block) const;
  Seconds gathered_by_modules(const CollectiveRecord& record, const Plan& plan) const;
  void add_weight_casts(LayerCost& cost, const LayerTrace& trace) const;
  // Prices one phase without its memory. `host`: host time besides launches, spread evenly over the
  // events of the phase.
  PhaseCost price_phase(LayerKind kind, const LayerTrace& trace, Phase part, const Plan& plan,
                        Seconds host);
  double load_of(const Plan& plan);
  Seconds issue_time(ModelPart part, const PhaseCost& phase) const;
  HostDeviceTime price_dispatch(const CollectiveRecord& record, Seconds whole,
                                PhaseCost& phase) const;
  // Returns the time of memory-bound kernels that read and write `moved` bytes in total.
  Seconds streaming_time(Bytes moved) const;
  void add_hidden_slices(const CollectiveRecord& record, const Plan& plan, PhaseCost& phase) const;
  void add_ring(const RingExchanges& ring, const Plan& plan, Seconds pass, PhaseCost& phase) const;
  // Adds the device time `time` of kernels that are not ops of the trace.
  void add_copies(PhaseCost& phase, StepTerm term, Seconds time, double kernels = 1) const;
  HostDeviceTime host_of_routing(const OpRecord& op, double rounded) const;
  void add_overlapped(PhaseCost& phase, StepTerm term, Seconds collectives, double share) const;
  bool is_overlapped(const CollectiveRecord& record) const;
  Seconds exposed_tensor_collective(const CollectiveRecord& record, const Plan& plan, Seconds whole,
                                    Seconds beside) const;
  Seconds overlapped_gemm_time(const LayerTrace& trace, std::size_t event, Seconds last);
  void add_recomputed(PhaseCost& backward, const std::vector<OpRecord>& ops, const Plan& plan);
  void add_recomputed_modules(PhaseCost& backward, const LayerTrace& trace,
                              const std::vector<ProgramEvent>& events, const Plan& plan);
  Bytes distinct_weights(const FixedCost& fixed, const Plan& plan, std::int64_t block) const;
  void add_weight_copies(FixedCost& fixed, const Plan& plan) const;
  void add_stash_copies(LayerCost& cost, const LayerTrace& trace, const Plan& plan) const;
  void add_gathered_logits(LayerCost& head, const LayerTrace& trace, const Plan& plan) const;
  Seconds end_op_time(const OpRecord& op);
  Seconds owner_broadcast_time(const CollectiveRecord& record, const StepEndTrace& trace,
                               const Plan& plan) const;
  Seconds reduce_in_buckets(const CollectiveRecord& record, const Plan& plan) const;
  Seconds in_calls(CollectiveRecord record, double calls, const Plan& plan) const;
  Seconds end_collective(const CollectiveRecord& record, const StepEndTrace& trace,
                         const Plan& plan) const;
  StepEndCost price_end(const StepEndTrace& trace, const Plan& plan);
  TransferCost price_transfer(const Program& program, const Plan& plan) const;
  OpPrice op_price(const OpRecord& op);
  HostDeviceTime price_op(const OpRecord& op, PhaseCost& phase);
  HostDeviceTime price_rounded(const std::vector<OpRecord>& ops, PhaseCost& phase);
  LayerCost price_layer(LayerKind kind, const LayerTrace& trace, const LayerMemory& memory,
                        const Plan& plan, std::int64_t block);

  std::shared_ptr<const PriceLists> prices_;
  // By kind of block: whether it has no experts although other kinds have.
  std::vector<bool> lacks_experts_;
  std::unordered_map<PricedOp, OpPrice, PricedOpHash> op_prices_;
  std::unordered_map<std::int64_t, double> loads_;  // busiest_load() by ep
  LayerCache<Layer> layers_;
  // Layers whose trace is kept for pricing.
  std::vector<Layer*> unpriced_;
  std::unordered_map<LayerKey, Traced, LayerKeyHash> traced_;  // for traced_micro_batch_
  std::int64_t traced_micro_batch_ = 0;
  LayerCache<FixedCost> fixed_;
  LayerCache<TransferTrace> transfer_traces_;
  LayerCache<TransferCost> transfers_;
};

}  // namespace tpsim
