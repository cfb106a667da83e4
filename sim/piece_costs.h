// The repeating parts of a model, traced once and priced: what one block, the embedding, the head
// and the word table cost in time and memory on one rank. A plan is arithmetic over these.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "core/plan.h"
#include "core/scenario.h"
#include "sim/collective_cost.h"
#include "sim/memory_change.h"
#include "sim/op_cost.h"
#include "sim/queue_cost.h"
#include "sim/trace.h"

namespace tpsim {

// What a device is busy with in forward and backward.
enum class WorkKind : std::uint8_t {
  kMatmul,               // linear layers
  kAttention,            // scores, softmax, values
  kElementwise,          // norms, activations, residuals, embedding, loss
  kTensorCommunication,  // inside the tensor group
  kZeroCommunication,    // gathers and reductions of ZeRO 2 and 3 around every layer
};
inline constexpr int kWorkKindCount = 5;

struct PhaseCost {
  QueueCost queue;
  std::array<Seconds, kWorkKindCount> work{};  // adds up to queue.device
  std::array<Seconds, 3> by_source{};          // by PriceSource; collectives left out
  MemoryChange memory;

  static PhaseCost then(const PhaseCost& first, const PhaseCost& second);
  static PhaseCost repeat(const PhaseCost& once, std::int64_t n);
};

// Once per step and piece, outside the pipeline.
struct StepEndCost {
  Seconds clear;      // gradients set to zero
  Seconds partials;   // sequence-parallel partial sums
  Seconds tied;       // word table shared by first and last stage
  Seconds reduction;  // over the data-parallel group
  Seconds norm;       // sum of squares, without the all-reduce of the one number
  Seconds optimizer;
  Seconds gather;  // updated weights

  StepEndCost& operator+=(const StepEndCost& other);
  friend StepEndCost operator*(double n, const StepEndCost& once);
};

struct PieceCost {
  PhaseCost forward, backward;
  PhaseCost accumulate;      // after the chunk's backward: gradients join the accumulation buffer
  BytesByCategory fixed{};   // weights, gradients, optimizer state
  BytesByCategory update{};  // allocated while the step ends, all pieces at once
  StepEndCost end;
};

// An activation on its way to the next stage.
struct TransferCost {
  Seconds wire;      // from stage to stage
  Seconds gather;    // inside the receiving tensor group
  double bytes = 0;  // of the whole activation
};

class PieceCosts {
 public:
  explicit PieceCosts(const Scenario& scenario);

  const PieceCost& piece(PieceKind kind, const Plan& plan);
  const TransferCost& transfer(const Plan& plan);
  // The all-reduce of the squared norm, and its way to the host.
  Seconds global_norm(const Plan& plan);

  const Scenario& scenario() const { return scenario_; }
  const OpCostModel& ops() const { return ops_; }
  const CollectiveCostModel& collectives() const { return collectives_; }
  std::size_t distinct_pieces() const { return layers_.size() + ends_.size(); }

 private:
  // What decides a piece's forward and backward / its end of step.
  using LayerKey = std::tuple<PieceKind, std::int64_t, std::int64_t, bool, Recompute, AttentionKind,
                              int, std::int64_t, DType>;
  using EndKey = std::tuple<PieceKind, std::int64_t, std::int64_t, std::int64_t, int, bool, DType>;
  struct LayerCost {
    PhaseCost forward, backward, accumulate;
  };
  struct EndCost {
    BytesByCategory fixed;
    BytesByCategory update;
    StepEndCost end;
  };

  PhaseCost price_phase(const PieceTrace& trace, std::size_t begin, std::size_t end,
                        const Plan& plan) const;
  StepEndCost price_end(const PieceTrace& trace, const Plan& plan) const;
  Seconds price_collective(const CollectiveRecord& record, const Plan& plan) const;
  QueueCost price_op(const OpRecord& op, PhaseCost& phase) const;
  LayerCost price_layer(PieceKind kind, const PieceTrace& trace, const Plan& plan) const;

  Scenario scenario_;
  OpCostModel ops_;
  CollectiveCostModel collectives_;
  std::map<LayerKey, LayerCost> layers_;
  std::map<EndKey, EndCost> ends_;
  std::map<std::pair<LayerKey, EndKey>, PieceCost> pieces_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>, TransferCost>
      transfers_;
};

}  // namespace tpsim
