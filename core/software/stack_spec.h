// Training software: host costs, options that change the executed program, and device memory
// overheads. Constants are in data/stacks/ with their sources.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/machine/calibration_facts.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/software/finetune.h"
#include "core/software/launch_rules.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Spreads of software without calibration rows, by what is unknown of a run. Each is a standard
// deviation: of log(step), and of memory relative to its peak. They come from the rows of
// data/strangers and data/left_out by source (tools/interval_spreads.py prints them, also without
// each source; docs/decisions/intervals.md).
inline constexpr double kUncalibratedSpread = 0.075;  // step
inline constexpr double kOtherRunSpread = 0.335;      // step of another program or GPU than theirs
inline constexpr double kUncalibratedMemorySpread = 0.21;  // memory

enum class GradientReduction : std::uint8_t {
  kAllReduce,      // every rank gets every gradient, also with a sharded optimizer
  kReduceScatter,  // with a sharded optimizer, each rank gets only its shard
};

// Options that change the program of a rank; the reference model implements all of them.
struct TrainingOptions {
  GradientReduction gradient_reduction = GradientReduction::kReduceScatter;
  GradientAccumulation gradient_accumulation = GradientAccumulation::kFused;
  // Gradients narrower than fp32 are copied to fp32 at the end of the step, only the optimizer's
  // shard of each rank.
  bool widened_optimizer_gradients = false;
  GradientSync gradient_sync = GradientSync::kEveryMicroBatch;
  ReduceDtype reduce_dtype = ReduceDtype::kAsComputed;
  bool overlap_gradient_reduction = false;  // with the last micro-batch's backward
  bool overlap_parameter_gather = false;    // with the next step's first forward
  bool overlap_tensor_reduction = false;    // dgrad reductions with wgrad GEMMs
  // With sequence parallelism, a layer's input is saved as a shard and gathered again for wgrad
  // (Korthikanti et al. 2022, section 4.2.2). If false, the gathered input is saved.
  bool tp_recompute_allgather = true;
  bool clip_gradients = true;
  OptimizerKind optimizer_kind = OptimizerKind::kAdamW;
  MuonTpMode muon_tp_mode = MuonTpMode::kDuplicated;
  LogitsDtype logits_dtype = LogitsDtype::kPlan;
  // Every rank computes maxima and sums of its logits in one pass; sums are relative to its own
  // maxima.
  bool online_loss = false;
  PipelineSends pipeline_sends = PipelineSends::kScattered;
  Finetune finetune;
};

constexpr bool overwrites_gradients(const TrainingOptions& options) {
  return options.gradient_accumulation == GradientAccumulation::kOverwriting;
}
constexpr bool fuses_accumulation(const TrainingOptions& options) {
  return options.gradient_accumulation != GradientAccumulation::kSeparate;
}
constexpr bool copies_logits(const TrainingOptions& options) {
  return options.logits_dtype == LogitsDtype::kFloat32;
}

// Whether ZeRO 2 and 3 accumulate whole gradients over micro-batches and reduce once per step.
inline bool holds_whole_gradients(const Plan& plan, const TrainingOptions& options) {
  const bool every =
      options.gradient_sync == GradientSync::kEveryMicroBatch ||
      (options.gradient_sync == GradientSync::kLastInPipeline && plan.degrees.pp == 1);
  return !every && plan.zero >= 2 && has_replicas(plan) && !offloads_weights(plan) &&
         micro_batches(plan) > 1;
}
inline DType whole_gradient_dtype(const Plan& plan, const TrainingOptions& options) {
  const bool as_computed = holds_whole_gradients(plan, options) &&
                           options.gradient_sync == GradientSync::kLastMicroBatch &&
                           options.reduce_dtype == ReduceDtype::kAsComputed;
  return as_computed ? plan.dtype : plan.gradient_dtype;
}

// Whether weights are stored in 16 bits only, so that gradients have the dtype of the weights.
inline bool has_narrow_gradients(const SoftwareParts& parts) {
  return parts.master_weights == MasterWeights::kNone;
}

// Host time to issue work. A step takes as long as the slower of host and device.
struct HostCost {
  Seconds per_op;             // per kernel
  Seconds per_block_op;       // additional, per kernel of a block: Python, dispatcher, autograd
  Seconds per_collective;     // per collective or P2P call
  Seconds per_block_forward;  // interpreter and hooks, per block and micro-batch
  Seconds per_block_backward;
  // Additional time in MoE blocks: routing, dispatch and expert modules. In forward, most of it is
  // waiting for token counts.
  Seconds per_routing_forward;
  Seconds per_routing_backward;
  // Additional time per local expert if a recipe quantizes its tokens: quantizers, tensors and
  // scales are created per expert.
  Seconds per_expert_forward;
  Seconds per_expert_backward;
  // ZeRO 3: hooks of a block's modules that gather and free weights, per pass.
  Seconds per_gather;
  Seconds per_transfer;     // per P2P send between stages, without its wire time
  Seconds per_micro_batch;  // schedule, data loading
  Seconds per_step;         // logging, timers, learning-rate schedule
  // Only with SoftwareParts::blocking_launches. Extra time per kernel, because the host detects its
  // end late, and per collective, because the group waits for its slowest host.
  Seconds blocking_op, blocking_collective;
  // For captured programs (sim/captured): Python, dispatcher and autograd of an op in forward, the
  // autograd engine of an op in backward, and the call of a module.
  Seconds forward_op, backward_op, module_call;
};

// All host times, for scaling or rounding.
inline std::array<Seconds*, 18> times_of(HostCost& host) {
  return {&host.per_op,
          &host.per_block_op,
          &host.per_collective,
          &host.per_block_forward,
          &host.per_block_backward,
          &host.per_routing_forward,
          &host.per_routing_backward,
          &host.per_expert_forward,
          &host.per_expert_backward,
          &host.per_gather,
          &host.per_transfer,
          &host.per_micro_batch,
          &host.per_step,
          &host.blocking_op,
          &host.blocking_collective,
          &host.forward_op,
          &host.backward_op,
          &host.module_call};
}

struct StackMemory {
  Bytes context;             // CUDA context and loaded kernels
  Bytes library_workspace;   // cuBLAS and similar libraries
  Bytes collective_buffers;  // per communicator of a rank
  Bytes allocation_granularity = Bytes(512);
  // The framework's allocator caches freed blocks and splits them for later requests. Tensors of
  // one category seldom fit the holes of another, so that each category keeps its own peak.
  bool caching_allocator = false;
  // With fused accumulation, autograd gets placeholder gradients. One buffer per distinct weight
  // shape, in the weights' dtype, stays allocated.
  bool gradient_stand_ins = false;
  // ZeRO 2 and 3 with overlapped reductions: a layer's whole gradients stay until those of the next
  // layer exist.
  bool layer_in_reduction = false;
  // Gradients are copied into a bucket of this many elements before they are reduced; 0: no bucket.
  std::int64_t reduction_bucket = 0;
  double fragmentation = 0.0;  // reserved but unused, as a share of activations and workspace
  // Standard deviation of the prediction, relative to the total.
  double spread = kUncalibratedMemorySpread;
};

// Settings that the software's launcher accepts; other plans are neither proposed nor predicted.
struct StackChoices {
  std::string source;  // of these limits
  SettingLists only;   // accepted values per setting; an empty list: all
  PartLists parts;     // part values that a search tries; other parts keep the stack's value

  // Whether the launcher accepts the value. A count of zero is always accepted.
  bool has(const SettingValue& value) const {
    const bool counts_nothing = value.value == 0 && row_of(value.setting).counts_for != nullptr;
    return only[value.setting].empty() || only.holds(value) || counts_nothing;
  }
};
// Returns "the stack does not support this " and the title of the setting.
const std::string& refusal_reason(Setting setting);

struct StackSpec {
  std::string name;
  std::string source;
  // Names used by people and in tables of measured runs ("Megatron-Bridge").
  std::string aliases;  // comma-separated
  Launcher launcher =
      Launcher::kNone;  // whose rules plans must satisfy (core/software/launch_rules.h)
  SoftwareParts parts;
  // Default ZeRO stage of runs with this stack; below 0: the default of the run's environment.
  int default_zero = -1;
  // Sequence parallelism of measured runs with tp > 1 that do not state it.
  bool sequence_parallel = false;
  // Default dtype of gradient accumulation in bf16 training.
  DType gradient_dtype = DType::kFloat32;
  // Default of Plan::fp8_param_gather for recipes with per-tensor scales.
  bool fp8_param_gather = false;
  TrainingOptions training;
  HostCost host;
  StackMemory memory;
  StackChoices choices;
  bool zero_2_and_3_with_pipeline = true;  // DeepSpeed refuses the combination
  // DeepSpeed's engine chooses the gradient reduction. bf16 training with fp32 accumulation uses
  // BF16_Optimizer for any ZeRO stage below 2. Other ZeRO 1 training reduces slice by slice.
  bool deepspeed_engine = false;
  // TpOverlap::kUserbuffers with sequence parallelism: share of the tensor group's gathers and
  // scatters that overlaps with GEMMs. GEMMs are not slowed down.
  double tp_overlap = 0.0;
  // Time of the layers' kernels other than GEMMs, relative to the fused kernels of the traced
  // program. Above 1 if the software makes passes over memory that SoftwareParts does not describe.
  double eager_traffic = 1.0;
  // Speed of the stack's fused attention relative to the profile's, which is the fastest available.
  double flash_speed = 1.0;
  // fp16 gradients are unscaled and checked for infinities in a separate pass before the optimizer.
  bool scales_loss = true;
  // Plans with Precision::kNone are treated as kFp8. Set in old stack files only: newer plans state
  // the precision.
  bool fp8_products = false;
  // With a low-precision recipe, inputs of linear layers are saved in 16 bits and quantized again
  // in backward. Weights are quantized for every GEMM, as in torchao. If false, quantized inputs
  // are saved and weights are quantized once per step.
  bool requantizes_in_backward = false;
  // Every GEMM quantizes its operands itself, as reference_model/ does on a GPU. Operands are
  // gathered in 16 bits and quantized for each GEMM into a separate buffer, transposed for wgrad.
  // All partial sums are promoted to fp32 outside the matrix units.
  bool quantizes_inside_gemm = false;
  // With torch.compile of the layers the loss is compiled too: no fp32 copy of the logits.
  bool compiles_loss = false;
  // Full recompute stops when all tensors for backward exist, as PyTorch's non-reentrant
  // checkpointing does.
  bool checkpoint_stops_early = false;
  // With ZeRO 3 gathered weights arrive in one buffer and are copied from there into tensors
  // (FSDP 2, DeepSpeed).
  bool copies_gathered_weights = false;
  GatheredUnits gathered_units = GatheredUnits::kInUse;
  // With tensor parallelism every column-parallel layer copies its input and reduces its own input
  // gradient (PaddlePaddle). Queries, keys, values, gate and up are layers of their own.
  bool copies_column_inputs = false;
  // Slowdown of compute overlapped with a collective (measured mean 1.19 in the literature).
  double overlap_slowdown = 1.19;
  // Standard deviation of a rank's micro-batch time over its mean: a step waits for the slowest
  // rank.
  double rank_jitter = 0.0;
  double run_spread = 0.01;  // relative standard deviation of repeated runs
  // Expected time of a step outside all modelled terms, relative to their sum, for software without
  // calibration.
  double uncalibrated_overhead = 0.0;
  // Standard deviation of the ratio of predicted to measured step time on the calibration rows.
  double residual_spread = kUncalibratedSpread;
  // Programs whose training step the stack describes, and profiles, by the start of their names, of
  // the GPUs whose rows residual_spread rests on. Empty: all. Comma-separated. Steps of other
  // programs or on other GPUs have an additional standard deviation.
  std::string spread_programs, spread_gpus;
  double other_runs = kOtherRunSpread;
  CalibrationFacts calibrated;  // set if the user fitted this file with tpsim calibrate
};

// Reason why the software cannot run a plan of the model: setting values, rules of the launcher, or
// ZeRO with pipelines. Empty if it can. `hint`: the source of the limit, or the supported values.
struct StackLimit {
  std::string reason, hint;
};
StackLimit violated_limit(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
// Returns the software without any limits.
StackSpec without_limits(StackSpec stack);

}  // namespace tpsim
