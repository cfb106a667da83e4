// How the framework runs a step outside of its layers: pipeline, memory, host, end of the step.
// sim/ and plans/ read these properties instead of software parts.
#pragma once

#include <cstdint>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/software/optimizer_kinds.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// P2P transfers between pipeline stages.
struct P2pHabits {
  bool sender_waits = true;  // the sending stage is busy until its transfer is complete
  // The receiving stage is busy too, and it receives only when it reaches the task. For software in
  // which sends and receives are separate calls, one after the other.
  bool receiver_waits = false;
};
// Whether P2P overlaps with compute. Megatron overlaps it in interleaved schedules only
// (megatron/training/arguments.py:1012 of Megatron-LM d98e8a6). `chunks` are those of a stage.
inline bool overlaps_p2p(const StackSpec& stack, std::int64_t chunks) {
  return chunks > 1 && stack.parts.overlap_p2p;
}
inline P2pHabits p2p_habits(const StackSpec& stack, std::int64_t chunks) {
  const bool waits = !overlaps_p2p(stack, chunks);
  return {waits, waits && stack.parts.p2p_calls == P2pCalls::kSerial};
}

// Returns whether the host runs ahead of the device across tasks. With overlapped P2P, the stream
// and not the host waits for a receive.
inline bool runs_ahead(const StackSpec& stack, std::int64_t chunks) {
  return overlaps_p2p(stack, chunks);
}

// The implementation that updates an offloaded optimizer.
inline CpuOptimizer cpu_optimizer(const StackSpec& stack) { return stack.parts.cpu_optimizer; }

// Whether attention masks the documents of a sequence.
inline bool masks_documents(const StackSpec& stack) {
  return stack.parts.attention_kernel == AttentionKernel::kFlex;
}

// Returns the number of blocks of a chunk, from the first, whose saved activations are offloaded to
// the host.
inline std::int64_t offloaded_blocks(const StackSpec& stack) { return stack.parts.offload_layers; }

// Returns the scenario with values resolved that depend on others: the host time of blocking
// launches, and the rotary kernel of models with scaled cosines and sines.
Scenario resolved(Scenario scenario);
// Whether the host waits for the result of every launch.
inline bool host_waits(const Scenario& scenario) {
  return scenario.stack.parts.blocking_launches || !scenario.profile.device.asynchronous;
}
inline Fp32Matmul fp32_matmul(const StackSpec& stack) { return stack.parts.fp32_matmul; }

// Degrees that every layer's memory depends on because of weights that FSDP keeps gathered: those
// of the next block, and of the unit that has embedding and head.
struct GatheredDegrees {
  bool expert = false;
  bool pipeline = false;
};
inline GatheredDegrees gathered_degrees(const StackSpec& stack, int zero) {
  const bool keeps = zero == 3 && stack.gathered_units != GatheredUnits::kInUse;
  return {keeps, keeps && stack.gathered_units == GatheredUnits::kRoot};
}

// With the last micro-batch's backward.
inline bool overlaps_reduction(const StackSpec& stack) {
  return stack.training.overlap_gradient_reduction;
}
// With the first micro-batch's forward.
inline bool overlaps_gather(const StackSpec& stack) {
  return stack.training.overlap_parameter_gather;
}
inline const Finetune& finetune_of(const StackSpec& stack) { return stack.training.finetune; }
inline bool clips_gradients(const StackSpec& stack) { return stack.training.clip_gradients; }
inline const OptimizerRow& optimizer_of(const StackSpec& stack) {
  return row_of(stack.training.optimizer_kind);
}
// Returns the row of the optimizer whose update the ops of AdamW in a trace stand for.
inline const OptimizerRow& updating_row(const StackSpec& stack) {
  const OptimizerRow& row = optimizer_of(stack);
  return row.is_executed ? row_of(OptimizerKind::kAdamW) : row;
}
// Returns the name of Muon's mode for matrices that tensor-parallel ranks shard.
inline std::string_view muon_tp_mode(const StackSpec& stack) {
  return name_of(stack.training.muon_tp_mode);
}
// Whether one rank updates a whole tensor or reduces it, so that the number of blocks of a stage
// changes the work of each rank.
bool has_owners(const StackSpec& stack, int zero);
// Whether a rank keeps fp32 weights, and no 16-bit weights outside of layers.
bool keeps_fp32_weights_alone(const StackSpec& stack, DType dtype);

// Lifetimes of gradients and optimizer temporaries in the training loop.
struct StepHabits {
  // Gradients exist only from backward to the end of a step: autograd allocates them, and
  // zero_grad() frees them (set_to_none). They do not exist at the peak of the activations, and the
  // activations are freed when backward ends. Only with one micro-batch, one stage, and software
  // without a copy of the weights; otherwise gradient buffers are persistent.
  bool frees_gradients = false;
  // Bytes of 16-bit gradients that exist during backward, as a share of the fp32 gradients.
  // torch.compile makes the backward of a whole model under autocast one function: the function
  // holds all that forward saved until it returns the fp32 copies of all gradients.
  double narrow_gradients = 0;
  // FSDP allocates gradients on the stream that reduces them. PyTorch's caching allocator does not
  // reuse freed memory of one stream on another, so gradients and activations share no memory.
  bool separate_pools = false;
  // Bytes of temporaries during the update, as a share of the optimizer state. Unfused ops over
  // lists of tensors compute the root of the second moment for all weights at once
  // (torch._foreach_sqrt in torch/optim/adamw.py).
  double optimizer_copy = 0;
  // The caching allocator splits memory that one category frees into blocks that other categories
  // cannot use. Expandable segments merge such blocks.
  bool splits_blocks = false;
};
StepHabits step_habits(const StackSpec& stack, const Plan& plan);

// Returns the bytes of a checkpoint: one copy of the weights in the plan's dtype, plus the
// optimizer state (core/software/optimizer_kinds.h, docs/decisions/master-weights.md), of trained
// weights only. Software
// that has fp32 weights only, and casts them for each use, saves no copy in the plan's dtype. With
// tied word embeddings, the first and the last pipeline stage both save optimizer state of the
// embedding.
Bytes checkpoint_size(const ModelSpec& model, const Plan& plan, const StackSpec& stack);

}  // namespace tpsim
