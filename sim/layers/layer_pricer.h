// The repeating parts of a model, traced once and priced: what one block, the embedding, the head
// and the word embeddings cost in time and memory on one rank. A plan is arithmetic over these.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "costs/collective_cost.h"
#include "costs/host_device_time.h"
#include "costs/op_cost.h"
#include "sim/layers/context_ring.h"
#include "sim/layers/memory_change.h"
#include "sim/layers/priced_parts.h"
#include "sim/trace/trace.h"

namespace tpsim {

struct PhaseCost {
  HostDeviceTime time;
  SecondsBy<kWorkTerms.back()> work;         // adds up to time.device
  SecondsBy<PriceSource::kModel> by_source;  // collectives left out
  MemoryChange memory;
  double load = 1;           // of the busiest rank's experts (sim/layers/expert_prices.h)
  std::int64_t experts = 1;  // of a block that one rank holds
};
PhaseCost then(const PhaseCost& first, const PhaseCost& second);
PhaseCost repeat(const PhaseCost& once, std::int64_t n);

// What one micro-batch costs.
struct LayerCost {
  PhaseCost forward, backward;
  PhaseCost accumulate;  // after the chunk's backward: gradients join the accumulation buffer
};

// The same, memory alone: known from the trace before anything is priced.
struct LayerMemory {
  MemoryChange forward, backward, accumulate;
  double gradients = 0;  // bytes of those that backward holds whole beside what is kept
};

// What every step costs, whatever the number of micro-batches.
struct FixedCost {
  BytesByCategory held{};    // weights, gradients, optimizer state
  BytesByCategory update{};  // allocated while the step ends, all layers at once
  StepEndCost end;
  Bytes host;  // held in the host's memory, where the host is not the device
  // Of a block: a gradient in the weights' dtype for each distinct shape of its weights.
  Bytes stand_ins = {};
};

// An activation on its way to the next stage.
struct TransferCost {
  Seconds wire;      // from stage to stage
  Seconds gather;    // inside the receiving tensor group
  double bytes = 0;  // of the whole activation
};

// What decides the cost of a layer; what does not matter to it is left at zero.
struct LayerKey {
  LayerKind kind{};
  std::int64_t block = 0;  // of blocks: which kind
  ParallelDegrees degrees{0, 0, 0, 0, 0};
  std::int64_t micro_batch = 0;
  std::int64_t virtual_stages = 0;
  std::int64_t node = 0;   // node_size(): how many GPUs of every node the plan takes
  std::int64_t world = 0;  // all GPUs, where they do not fill whole nodes
  int zero = 0;
  bool sequence_parallel = false;
  Recompute recompute{};
  AttentionKind attention{};
  RankOrder rank_order{};
  Offload offload{};
  DType dtype{};
  DType gradient_dtype{};
  Precision precision{};
  bool fp8_param_gather = false;
  bool whole_gradients = false;  // holds_whole_gradients()
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};
// Keys of a layer, of its share of the step's end, of a transfer, and of all chunks of a plan,
// whatever their layers. Blocks of a plan that recomputes some of them are of two kinds: call
// layer_key() with with_whole_recompute().
LayerKey layer_key(LayerKind kind, const Plan& plan, const Scenario& scenario,
                   std::int64_t block = 0);
LayerKey fixed_key(LayerKind kind, const Plan& plan, const Scenario& scenario,
                   std::int64_t block = 0);
LayerKey transfer_key(const Plan& plan);
LayerKey chunk_key(const Plan& plan, const Scenario& scenario);

struct LayerKeyHash {
  std::size_t operator()(const LayerKey& key) const noexcept;
};

// What was made of layers so far; references stay valid. Neighbouring plans ask for the same: the
// last answer for each kind of layer, recomputed whole or not, needs no search.
template <class T>
class LayerCache {
 public:
  // The value of the key, and whether it was made just now.
  std::pair<T&, bool> place(const LayerKey& key) {
    Entry*& recent = recent_of(key);
    if (recent && recent->first == key) return {recent->second, false};
    const auto [entry, is_new] = entries_.try_emplace(key);
    recent = &*entry;
    return {entry->second, is_new};
  }

 private:
  using Entry = std::pair<const LayerKey, T>;

  Entry*& recent_of(const LayerKey& key) {
    return recent_[static_cast<std::size_t>(key.kind)][key.recompute == Recompute::kFull ? 1 : 0];
  }

  std::unordered_map<LayerKey, T, LayerKeyHash> entries_;
  std::array<std::array<Entry*, 2>, static_cast<std::size_t>(LayerKind::kHead) + 1> recent_{};
};

// The inputs of an op's price: OpCostModel::price() reads nothing else of a record.
struct PricedOp {
  OpKey key;
  double flops = 0, bytes = 0;
  bool is_grouped = false;  // is_grouped_product()
  friend bool operator==(const PricedOp&, const PricedOp&) = default;
};
struct PricedOpHash {
  std::size_t operator()(const PricedOp& op) const noexcept { return std::hash<OpKey>()(op.key); }
};

// The price lists of a scenario: built once, read by any number of threads.
struct PriceLists {
  explicit PriceLists(const Scenario& scenario);

  Scenario scenario;
  OpCostModel ops;
  CollectiveCostModel collectives;
};

// Host and device are one queue where the host waits for every op.
HostDeviceTime launch(const Scenario& scenario, Seconds issue, Seconds run);

// Not for two threads at once: everything asked for is kept. References stay valid.
class LayerPricer {
 public:
  explicit LayerPricer(const Scenario& scenario);
  explicit LayerPricer(std::shared_ptr<const PriceLists> prices);

  // `block`: the kind of block, where the layer is one.
  const LayerCost& layer(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const LayerMemory& layer_memory(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const FixedCost& fixed(LayerKind kind, const Plan& plan, std::int64_t block = 0);
  const TransferCost& transfer(const Plan& plan);
  // The traces that layer() and fixed() price.
  LayerTrace layer_program(LayerKind kind, const Plan& plan, std::int64_t block = 0) const;
  StepEndTrace step_end_program(LayerKind kind, const Plan& plan, std::int64_t block = 0) const;
  // The all-reduce of the squared norm, and its way to the host.
  Seconds global_norm(const Plan& plan);
  // What a chunk's forward and its backward end with where scales are those of steps before: the
  // ranks that share the layers agree on the greatest values, and new scales are made of them.
  PhaseCost scale_exchange(const Plan& plan, std::int64_t blocks) const;
  // Forgets the traces of layers that were never priced.
  void drop_traces();

  // Of one call among the plan's groups. A transfer is the sender's; to receive costs nothing more.
  Seconds collective(const CollectiveRecord& record, const Plan& plan) const;

  // How much longer an op takes in this stack than the profile's kernel for it.
  double stack_factor(const OpRecord& op) const;

  const Scenario& scenario() const { return prices_->scenario; }
  const OpCostModel& ops() const { return prices_->ops; }
  const CollectiveCostModel& collectives() const { return prices_->collectives; }
  const std::shared_ptr<const PriceLists>& prices() const { return prices_; }

 private:
  // What is the same wherever the groups lie.
  struct Traced {
    std::shared_ptr<const LayerTrace> trace;
    LayerMemory memory;
  };
  struct Layer : Traced {  // with its trace until it is priced
    std::optional<LayerCost> cost;
  };
  LayerKey key_of(LayerKind kind, const Plan& plan, std::int64_t block) const;
  Layer& traced_layer(LayerKind kind, const Plan& plan, std::int64_t block);
  LayerTrace traced_program(LayerKind kind, const LayerKey& key, const Plan& plan,
                            std::int64_t block) const;
  Traced trace_layer(LayerKind kind, const LayerKey& key, const Plan& plan, std::int64_t block);
  // The host's own work for a block, beside what it issues.
  struct HostOfBlock {
    Seconds forward, backward;
  };
  HostOfBlock host_of_block(const Plan& plan, std::int64_t block) const;
  // Without memory. `host`: its own work, spread evenly over what it issues.
  PhaseCost price_phase(LayerKind kind, const LayerTrace& trace, Phase part, const Plan& plan,
                        Seconds host);
  double load_of(const Plan& plan);
  Seconds issue_time(ModelPart part) const;
  HostDeviceTime price_dispatch(const CollectiveRecord& record, Seconds whole,
                                PhaseCost& phase) const;
  // What copies, which are limited by memory alone, take to move so much.
  Seconds streaming_time(Bytes moved) const;
  void add_hidden_slices(const CollectiveRecord& record, const Plan& plan, PhaseCost& phase) const;
  void add_ring(const RingExchanges& ring, const Plan& plan, Seconds pass, PhaseCost& phase) const;
  // Of so many kernels, that no op of the trace is.
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
  std::vector<bool> lacks_experts_;  // by kind of block, where others have some
  std::unordered_map<PricedOp, OpPrice, PricedOpHash> op_prices_;
  std::unordered_map<std::int64_t, double> loads_;  // of the busiest rank's experts, by ep
  LayerCache<Layer> layers_;
  std::vector<Layer*> unpriced_;                               // layers that still hold a trace
  std::unordered_map<LayerKey, Traced, LayerKeyHash> traced_;  // of the micro-batch at hand
  std::int64_t traced_micro_batch_ = 0;
  LayerCache<FixedCost> fixed_;
  LayerCache<TransferTrace> transfer_traces_;
  LayerCache<TransferCost> transfers_;
};

}  // namespace tpsim
