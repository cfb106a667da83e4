// Traces parts of the reference model on the meta device.
#pragma once

#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "kernels/meta/meta_device.h"
#include "reference_model/parallel/process_groups.h"

namespace tpsim {

// A rank on the meta device: runs the reference model without data or communication and records it.
class MetaRank {
 public:
  MetaRank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
           const RankCoordinates& at);
  MetaRank(const MetaRank&) = delete;
  MetaRank& operator=(const MetaRank&) = delete;

  const RankContext& context() const { return context_; }
  TraceRecorder& recorder() { return recorder_; }

 private:
  TraceRecorder recorder_;  // must outlive the device, whose storages report to it
  MetaDevice device_;
  OwnedGroups groups_;
  RankContext context_;
};

// The repeating parts of a model. The word embeddings are a separate part because embedding and
// head may share them.
enum class LayerKind : std::uint8_t { kWordEmbeddings, kEmbedding, kBlock, kHead };

// Phases of a traced layer for one micro-batch. The input of forward is allocated before the phase,
// and its output stays allocated. Backward does the same with the gradients of output and input.
// All other memory that forward leaves allocated is saved for backward.
enum class Phase : std::uint8_t {
  kForward,
  kBackward,
  kWeightGradient,  // the wgrad GEMMs, if the schedule splits the backward
  kAccumulate,  // after the backward of the whole chunk: gradients in separate buffers are added to
                // the accumulation buffer
};
struct LayerTrace {
  Program program;
  std::size_t forward = 0, forward_end = 0, backward = 0, backward_end = 0;
  std::size_t gradients_end = 0, end = 0;
  std::size_t recompute_end = 0;  // with full recompute, backward first runs forward again

  // Returns the events [first, end) of a phase.
  std::pair<std::size_t, std::size_t> span(Phase phase) const {
    switch (phase) {
      case Phase::kForward: return {forward, forward_end};
      case Phase::kBackward: return {backward, backward_end};
      case Phase::kWeightGradient: return {backward_end, gradients_end};
      case Phase::kAccumulate: break;
    }
    return {gradients_end, end};
  }
};
// Traces forward and backward of a layer. Word embeddings have no ops of their own, so their phases
// are empty.
LayerTrace trace_layers(LayerKind kind, const ModelSpec& model, const Plan& plan,
                        const TrainingOptions& options);

// A tensor with one owner in its data group, and the events of one unit's owners: allocations of
// state or updates. Traces contain the events of all owners.
struct OwnedTensor {
  double cost = 0;  // update_cost()
  double elements = 0;
  bool of_experts = false;
};
struct OwnedEvents {
  std::size_t begin = 0, end = 0;
  bool of_experts = false;
};

// Work of a layer once per step. Events [0, clear) allocate weights, gradients and optimizer state;
// [clear, reduce) clear the gradients; [reduce, end) reduce them and update the weights.
struct StepEndTrace {
  Program program;
  std::size_t clear = 0, reduce = 0, end = 0;
  // Number of parameter units (flat buffers), and of parameters.
  std::int64_t units = 0, tensors = 0;
  std::vector<OwnedTensor> owned_tensors;
  std::vector<OwnedEvents> owned;
};
StepEndTrace trace_step_end(LayerKind kind, const ModelSpec& model, const Plan& plan,
                            const TrainingOptions& options);

// P2P transfer of an activation: events [0, receive) send it, events [receive, end) receive it.
struct TransferTrace {
  Program program;
  std::size_t receive = 0;
};
TransferTrace trace_transfer(const ModelSpec& model, const Plan& plan,
                             const TrainingOptions& options);

// Trace of one rank with the plan's real schedule: allocation of the weights, then `steps` whole
// steps with every op, collective and allocation.
struct RankTrace {
  Program program;
  std::size_t step = 0;  // index of the first event of the first step
};
RankTrace trace_rank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank, std::int64_t steps = 1);

}  // namespace tpsim
