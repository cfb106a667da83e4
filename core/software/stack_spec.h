// The training software: what it costs on the host, which options change the program that runs,
// and what it adds to the memory of a device. Constants live in data/stacks/ with their sources.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/machine/calibration_facts.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/software/launch_rules.h"
#include "core/software/stack_parts.h"

namespace tpsim {

enum class GradientReduction : std::uint8_t {
  kAllReduce,      // every rank gets every gradient, also with a sharded optimizer
  kReduceScatter,  // with a sharded optimizer each rank gets its shard only
};

// Options that change what a rank executes; the reference implementation honours all of them.
struct TrainingOptions {
  GradientReduction gradient_reduction = GradientReduction::kReduceScatter;
  // Weight gradients are added to the accumulation buffer inside the matrix product. Otherwise they
  // are produced in the plan's dtype and added afterwards: to a buffer of the same dtype when the
  // layer's backward ends, to a wider one when the micro-batch's backward ends, through a widened
  // copy of each tensor.
  bool fused_gradient_accumulation = true;
  // With that: the products of a step's first micro-batch overwrite what they would add to, so that
  // gradients need no clearing but where sums or lookups make them.
  bool overwritten_gradients = false;
  // The optimizer works on an fp32 copy of its share of narrower gradients, made at the step's end.
  bool widened_optimizer_gradients = false;
  GradientSync gradient_sync = GradientSync::kEveryMicroBatch;
  ReduceDtype reduce_dtype = ReduceDtype::kAsComputed;
  bool overlap_gradient_reduction = false;  // with the last micro-batch's backward
  bool overlap_parameter_gather = false;    // with the next step's first forward
  bool overlap_tensor_reduction = false;    // of input gradients, with weight gradients' products
  // With sequence parallelism a layer's input is kept in parts and gathered again for its weight
  // gradients (Korthikanti et al. 2022, section 4.2.2). Otherwise it is kept as it was gathered.
  bool tp_recompute_allgather = true;
  bool clip_gradients = true;
  // The loss is taken from an fp32 copy of the logits, and so is their gradient.
  bool wide_logits = false;
  // Every rank takes maxima and sums of its logits in one pass, sums relative to its own maxima.
  bool online_loss = false;
  // Tensor-parallel ranks each send their part of an activation to the next stage, which gathers it
  // (Narayanan et al. 2021, section 4.1), instead of all sending the same.
  bool scatter_gather_transfers = true;
};

constexpr bool overwrites_gradients(const TrainingOptions& options) {
  return options.fused_gradient_accumulation && options.overwritten_gradients;
}

// ZeRO 2 and 3 whose whole gradients add up over a step's micro-batches, to be reduced once.
inline bool holds_whole_gradients(const Plan& plan, const TrainingOptions& options) {
  const bool every =
      options.gradient_sync == GradientSync::kEveryMicroBatch ||
      (options.gradient_sync == GradientSync::kLastInPipeline && plan.degrees.pp == 1);
  return !every && plan.zero >= 2 && has_replicas(plan) && micro_batches(plan) > 1;
}
inline DType whole_gradient_dtype(const Plan& plan, const TrainingOptions& options) {
  const bool as_computed = holds_whole_gradients(plan, options) &&
                           options.gradient_sync == GradientSync::kLastMicroBatch &&
                           options.reduce_dtype == ReduceDtype::kAsComputed;
  return as_computed ? plan.dtype : plan.gradient_dtype;
}

// Time the host spends to issue work. A step takes the longer of its host and its device queue.
struct HostCost {
  Seconds per_op;             // one kernel
  Seconds per_collective;     // one collective or p2p call
  Seconds per_block_forward;  // interpreter and hooks, per block and micro-batch
  Seconds per_block_backward;
  // Beside that in blocks with experts: routing, dispatch and the experts' modules. In forward most
  // of it waits for the counts of tokens.
  Seconds per_routing_forward;
  Seconds per_routing_backward;
  // Beside that for each expert that a rank holds, where a recipe rounds its tokens to fewer bits:
  // quantizers, tensors and scales are made expert by expert.
  Seconds per_expert_forward;
  Seconds per_expert_backward;
  // ZeRO 3: hooks of a block's modules that gather its weights and free them, for each pass.
  Seconds per_gather;
  Seconds per_transfer;     // a send between pipeline stages, beside its traffic
  Seconds per_micro_batch;  // schedule, data loading
  Seconds per_step;         // logging, timers, learning-rate schedule
  // SoftwareParts::blocking_launches: what it adds to one kernel, whose end the host learns of
  // late, and to one collective, for which the ranks of a group wait until the slowest host calls.
  Seconds blocking_op, blocking_collective;
};

// Every time of a host, to scale or round all of them.
inline std::array<Seconds*, 14> times_of(HostCost& host) {
  return {&host.per_op,
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
          &host.blocking_collective};
}

struct StackMemory {
  Bytes context;             // CUDA context and loaded kernels
  Bytes library_workspace;   // cuBLAS and friends
  Bytes collective_buffers;  // per communicator that a rank belongs to
  Bytes allocation_granularity = Bytes(512);
  // A framework's allocator keeps what is freed and cuts it to the sizes asked for then: tensors of
  // one category seldom fit the holes of another, so each category holds its own peak.
  bool caching_allocator = false;
  // Where weight gradients are added to their buffer inside the product, autograd is handed a
  // stand-in instead: one in the weights' dtype for each distinct shape, kept from then on.
  bool gradient_stand_ins = false;
  // ZeRO 2 and 3 with reductions beside backward: a layer's whole gradients stay until those of the
  // next one are there.
  bool layer_in_reduction = false;
  // Gradients are copied into a flat buffer of this many elements before they are reduced; 0: not.
  std::int64_t reduction_bucket = 0;
  double fragmentation = 0.0;  // reserved but unused, as a share of activations and workspace
  double spread = 0.03;        // standard deviation of the prediction, relative to the total
};

// What the software's launcher can be told to do: no other plan is proposed or predicted.
struct StackChoices {
  std::string source;  // where that is said
  SettingLists only;   // the values of a setting that it has; an empty list: all
  PartLists parts;     // values of parts that a search tries; of the others the stack's own alone

  // What counts something counts nothing in most plans, which is no choice.
  bool has(const SettingValue& value) const {
    const bool counts_nothing = value.value == 0 && row_of(value.setting).counts_for != nullptr;
    return only[value.setting].empty() || only.holds(value) || counts_nothing;
  }
};
// "the stack has no such recompute"
const std::string& refusal_reason(Setting setting);
// Why the software cannot run the plan; empty where it can.
std::string refusal_reason(const StackChoices& choices, const Plan& plan);

struct StackSpec {
  std::string name;
  std::string source;
  // Words by which tables of measured runs and people call it ("Megatron-Bridge").
  std::string aliases;                  // with commas between them
  Launcher launcher = Launcher::kNone;  // whose rules its plans obey (core/software/launch_rules.h)
  SoftwareParts parts;
  // ZeRO stage of its runs where none is stated; below 0: the environment of the run decides.
  int default_zero = -1;
  // In which gradients add up in bf16 training unless a plan says otherwise.
  DType gradient_dtype = DType::kFloat32;
  // Recipes with a scale for a tensor keep and gather weights in 8 bits where no run says
  // otherwise.
  bool fp8_param_gather = false;
  TrainingOptions training;
  HostCost host;
  StackMemory memory;
  StackChoices choices;
  bool zero_2_and_3_with_pipeline = true;  // DeepSpeed refuses the combination
  // DeepSpeed's engine decides how gradients are added up: bf16 training that accumulates in fp32
  // is its BF16_Optimizer's, whatever ZeRO stage below 2 is named, other training of stage 1 goes
  // slice by slice.
  bool deepspeed_engine = false;
  // TpOverlap::kUserbuffers: share of the tensor group's gathers and scatters that hides behind
  // the products beside them, with sequence parallelism; they slow nothing down there.
  double tp_overlap = 0.0;
  // What the passes that SoftwareParts does not name add to the layers' kernels other than
  // products: their time over that of the fused ones in the traced program.
  double eager_traffic = 1.0;
  // Speed of the stack's fused attention over that of the profile's, which is the best of its day.
  double flash_speed = 1.0;
  // Gradients of fp16 are divided by the loss scale, and looked through for infinities, in a pass
  // of their own before the optimizer.
  bool scales_loss = true;
  // Plans without a recipe take Precision::kFp8 all the same; plans say it themselves by now.
  bool fp8_products = false;
  // With a recipe of fewer bits, inputs of linear layers are kept in 16 and rounded again in
  // backward, and weights are rounded for every product, as torchao does. Otherwise the rounded
  // inputs are kept, and weights are rounded once a step.
  bool requantizes_in_backward = false;
  // Every product rounds its operands itself, as reference_model/ does on a GPU: anew and beside
  // that into memory of its own, of 16 bits as they were gathered, turned where sums ask for it,
  // and with all sums outside the matrix units.
  bool quantizes_inside_gemm = false;
  // Slowdown of slowdown of compute overlapped with a collective (measured mean 1.19 in the
  // literature).
  double overlap_slowdown = 1.19;
  // Standard deviation of one rank's micro-batch time over its mean: a step waits for the slowest.
  double rank_jitter = 0.0;
  double run_spread = 0.01;  // standard deviation of repeated runs, relative
  // What a step takes beside all terms that are modelled, as a share of their sum: its expectation
  // for software that nobody has calibrated.
  double uncalibrated_overhead = 0.0;
  // Standard deviation of prediction over measurement on the rows that calibrated the stack.
  double residual_spread = 0.05;
  CalibrationFacts calibrated;  // of this file by its user
};

// Why the software cannot run a plan of the model: by its values, its launcher's rules, or ZeRO
// with pipelines; empty where it can. `hint`: where that is said.
struct StackLimit {
  std::string reason, hint;
};
StackLimit violated_limit(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
// The software as if it could run everything.
StackSpec without_limits(StackSpec stack);

}  // namespace tpsim
