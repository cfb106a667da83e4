// Tracing: the reference model, run on the meta device.
#pragma once

#include <utility>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "kernels/meta/meta_device.h"
#include "reference_model/parallel/process_groups.h"

namespace tpsim {

// A rank without storage or neighbours, ready to run the reference model and record it.
class MetaRank {
 public:
  MetaRank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
           const RankCoordinates& at);
  MetaRank(const MetaRank&) = delete;
  MetaRank& operator=(const MetaRank&) = delete;

  const RankContext& context() const { return context_; }
  TraceRecorder& recorder() { return recorder_; }

 private:
  TraceRecorder recorder_;  // outlives the device, whose storages report to it
  MetaDevice device_;
  OwnedGroups groups_;
  RankContext context_;
};

// The parts of the model that repeat. Word embeddings are a part of their own because embedding
// and head may share them.
enum class LayerKind : std::uint8_t { kWordEmbeddings, kEmbedding, kBlock, kHead };

// One kind of layer, traced over one micro-batch: a program and where its phases begin.
// Forward starts with its input alive and ends with its output alive; backward likewise with the
// gradients. The kept difference is what lives between them.
enum class Phase : std::uint8_t {
  kForward,
  kBackward,
  kAccumulate,  // after the backward of the whole chunk: gradients kept beside the accumulation
                // buffer are added to it
};
struct LayerTrace {
  Program program;
  std::size_t forward = 0, forward_end = 0, backward = 0, backward_end = 0, end = 0;

  // First event, and the one behind the last.
  std::pair<std::size_t, std::size_t> span(Phase phase) const {
    switch (phase) {
      case Phase::kForward: return {forward, forward_end};
      case Phase::kBackward: return {backward, backward_end};
      case Phase::kAccumulate: break;
    }
    return {backward_end, end};
  }
};
// Word embeddings have no layers of their own: their phases are empty.
LayerTrace trace_layers(LayerKind kind, const ModelSpec& model, const Plan& plan,
                        const TrainingOptions& options);

// What a layer does once per step, traced without any micro-batch: it allocates its weights,
// gradients and optimizer state in [0, clear), clears the gradients in [clear, reduce), and reduces
// them and updates the weights in [reduce, end).
struct StepEndTrace {
  Program program;
  std::size_t clear = 0, reduce = 0, end = 0;
  std::int64_t units = 0, tensors = 0;  // parameters: flat ranges, and tensors in them
};
StepEndTrace trace_step_end(LayerKind kind, const ModelSpec& model, const Plan& plan,
                            const TrainingOptions& options);

// What a stage does to pass one activation on and to take one in: [0, receive) and [receive, end).
struct TransferTrace {
  Program program;
  std::size_t receive = 0;
};
TransferTrace trace_transfer(const ModelSpec& model, const Plan& plan,
                             const TrainingOptions& options);

// One rank's weights being allocated and its first steps, with its real schedule: every op,
// collective and allocation.
struct RankTrace {
  Program program;
  std::size_t step = 0;  // the event at which the first step begins
};
RankTrace trace_rank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank, std::int64_t steps = 1);

}  // namespace tpsim
