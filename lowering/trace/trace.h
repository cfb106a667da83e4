// Traces of the repeating parts of a model: what one rank records of a layer on the meta device.
// layer_tracer.cc runs the reference model for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/enum_words.h"
#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// The repeating parts of a model. The word embeddings are a separate part because embedding and
// head may share them. kHeadTable: the head's table, if only one of both tables is trained.
enum class LayerKind : std::uint8_t { kWordEmbeddings, kHeadTable, kEmbedding, kBlock, kHead };

// Phases of a layer, and of a P2P transfer between stages. The input of forward is allocated before
// the phase, and its output stays allocated. Backward does the same with the gradients of output
// and input. All other memory that forward leaves allocated is saved for backward.
enum class Phase : std::uint8_t {
  // Once per micro-batch.
  kForward,
  kRecompute,  // forward ops that run again before backward, if the trace does not contain them
  kBackward,
  kWeightGradient,  // the wgrad GEMMs, if the schedule splits the backward
  kAccumulate,      // after the backward of the chunk: adds gradients in separate buffers to the
                    // accumulation buffer
  kSend,
  kReceive,
  // Once per step.
  kClearGradients,
  kUpdate,  // reduces gradients, updates and gathers weights
  // Once per run.
  kAllocate,  // weights, gradients and optimizer state
};
template <>
inline constexpr auto kEnumNames<Phase> = words<10>(
    "forward recompute backward weight_gradient accumulate send receive clear_gradients update "
    "allocate");
inline constexpr std::size_t kPhaseCount = 10;

struct LayerTrace {
  struct Span {
    std::size_t begin = 0, end = 0;  // events [begin, end)
  };
  Program program;
  std::array<Span, kPhaseCount> spans = {};
  std::size_t recompute_end = 0;  // with full recompute, backward first runs forward again

  Span& span(Phase phase) { return spans[static_cast<std::size_t>(phase)]; }
  const Span& span(Phase phase) const { return spans[static_cast<std::size_t>(phase)]; }
};

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

// Work of a layer once per run and once per step.
struct StepEndTrace : LayerTrace {
  // Number of trained parameter units (flat buffers), and of trained parameters.
  std::int64_t units = 0, tensors = 0;
  std::vector<OwnedTensor> owned_tensors;
  std::vector<OwnedEvents> owned;
};

// Traces forward and backward of a layer. Word embeddings have no ops of their own, so their phases
// are empty.
LayerTrace trace_layers(LayerKind kind, const ModelSpec& model, const Plan& plan,
                        const TrainingOptions& options);
// Returns a trace for each size of the micro-batch, instead of that of the plan.
std::vector<LayerTrace> trace_sizes(LayerKind kind, const ModelSpec& model, const Plan& plan,
                                    const TrainingOptions& options,
                                    std::span<const std::int64_t> micro_batches);

// Traces the work of a layer once per run and once per step.
StepEndTrace trace_step_end(LayerKind kind, const ModelSpec& model, const Plan& plan,
                            const TrainingOptions& options);

// Traces the P2P transfer of an activation.
LayerTrace trace_transfer(const ModelSpec& model, const Plan& plan, const TrainingOptions& options);

}  // namespace tpsim
