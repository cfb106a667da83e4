// Traces the reference model on the meta device.
#pragma once

#include <utility>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "kernels/meta/meta_device.h"
#include "reference_model/parallel/process_groups.h"

namespace tpsim {

// A rank without storage or neighbours that runs and records the reference model.
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

// The repeating parts of the model. Word embeddings are separate because embedding and head may
// share them.
enum class LayerKind : std::uint8_t { kWordEmbeddings, kEmbedding, kBlock, kHead };

// Phases of one kind of layer, traced over one micro-batch. Forward starts with its input alive and
// ends with its output alive; backward the same with gradients. The difference is saved in between.
enum class Phase : std::uint8_t {
  kForward,
  kBackward,
  kAccumulate,  // after the backward of the whole chunk: gradients in separate buffers are added to
                // the accumulation buffer
};
struct LayerTrace {
  Program program;
  std::size_t forward = 0, forward_end = 0, backward = 0, backward_end = 0, end = 0;

  // First event, and one past the last.
  std::pair<std::size_t, std::size_t> span(Phase phase) const {
    switch (phase) {
      case Phase::kForward: return {forward, forward_end};
      case Phase::kBackward: return {backward, backward_end};
      case Phase::kAccumulate: break;
    }
    return {backward_end, end};
  }
};
// Word embeddings run no ops of their own: their phases are empty.
LayerTrace trace_layers(LayerKind kind, const ModelSpec& model, const Plan& plan,
                        const TrainingOptions& options);

// Work of a layer once per step, traced without micro-batches. [0, clear) allocates weights,
// gradients and optimizer state; [clear, reduce) clears the gradients; [reduce, end) reduces them
// and updates the weights.
struct StepEndTrace {
  Program program;
  std::size_t clear = 0, reduce = 0, end = 0;
  std::int64_t units = 0, tensors = 0;  // parameters: flat ranges, and tensors in them
};
StepEndTrace trace_step_end(LayerKind kind, const ModelSpec& model, const Plan& plan,
                            const TrainingOptions& options);

// Work of a stage to send one activation, [0, receive), and to receive one, [receive, end).
struct TransferTrace {
  Program program;
  std::size_t receive = 0;
};
TransferTrace trace_transfer(const ModelSpec& model, const Plan& plan,
                             const TrainingOptions& options);

// Allocation of one rank's weights and its first steps, with its real schedule: every op,
// collective and allocation.
struct RankTrace {
  Program program;
  std::size_t step = 0;  // the event at which the first step begins
};
RankTrace trace_rank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank, std::int64_t steps = 1);

}  // namespace tpsim
