// What tpsim says about a plan. Plain values, filled by sim/ and read by plans/, cli/ and gui/.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/units.h"
#include "core/machine/profile.h"
#include "core/plan/plan.h"
#include "core/program/program.h"

namespace tpsim {

// The terms of a step, seen from its busiest stage. They add up to the step.
enum class StepTerm : std::uint8_t {
  // What a device is busy with in forward and backward.
  kMatmul,                // linear layers
  kAttention,             // scores, softmax, values
  kRecurrence,            // convolutions, scans and gates of Mamba-2 and of gated delta nets
  kElementwise,           // norms, activations, residuals, embedding, loss
  kTensorCommunication,   // inside the tensor group
  kZeroCommunication,     // gathers and reductions of ZeRO 2 and 3 around every layer
  kContextCommunication,  // keys and values over the context group
  kExpertCommunication,   // tokens on their way to experts and back
  kGroupedProducts,       // of experts
  kPermute,               // routing, and tokens put in their experts' order and back
  kImbalance,             // waiting for the rank whose experts got the most tokens

  kHostWait,           // the device waits for the host to issue work
  kTransfer,           // sending activations, gathering received ones
  kBubble,             // waiting for other stages
  kGradientReduction,  // over the data-parallel group, as far as nothing hides it
  kTiedEmbedding,
  kClipping,
  kOptimizer,
  kWeightGather,
  kHostStep,              // once per step: logging, schedule
  kStragglers,            // waiting for the slowest of many ranks
  kUncalibratedOverhead,  // expected of software that nobody has calibrated
};
template <>  // stable keys
inline constexpr auto kEnumNames<StepTerm> = words<22>(
    "matmul attention recurrence elementwise tensor_communication zero_communication "
    "context_communication expert_communication grouped_products permutation expert_imbalance "
    "host_wait pipeline_transfer pipeline_bubble gradient_reduction tied_embedding "
    "gradient_clipping optimizer weight_gather host_step stragglers unmodelled");
inline constexpr auto kStepTerms = all_of<StepTerm>();
inline constexpr auto kWorkTerms = all_up_to<StepTerm::kImbalance>();

// A share of the step.
struct Term {
  StepTerm kind{};
  Seconds time;
  std::string formula;  // in words and symbols
  std::string inputs;   // the symbols' values in this plan
  std::string source;   // where the constants come from
};

struct StageMemory {
  std::int64_t stage = 0;
  std::array<Bytes, kMemoryCategoryCount> by_category{};  // at the moment of the peak
  Bytes context;
  Bytes fragmentation;
  Bytes total() const;
};

// Which share of the device time was priced from what.
struct Sources {
  double exact_entries = 0;         // op found in the profile
  double interpolated_entries = 0;  // between measured entries
  double model = 0;                 // from DeviceModel constants
};

struct Prediction {
  Seconds step;
  Seconds step_low;  // 90 % interval
  Seconds step_high;
  double hardware_tflops_per_gpu = 0;  // counts recompute
  double model_tflops_per_gpu = 0;     // does not; the whole square of causal attention
  // As model_tflops_per_gpu, with half of that square: what Megatron has logged since 2024.
  double half_mask_tflops_per_gpu = 0;
  double mfu = 0;  // model FLOPs over the peak of the linear layers' operands
  double tokens_per_s = 0;
  double bubble_fraction = 0;  // idle share of the pipeline phase, mean over stages
  Bytes capacity;              // of one device
  Bytes peak;                  // of the fullest stage
  double p_oom = 0;            // probability that the fullest stage does not fit
  // With the optimizer offloaded: what a node's host holds for its GPUs, and has.
  Bytes host_memory, host_capacity;
  std::vector<StageMemory> memory;
  std::vector<Term> breakdown;  // every term, in the order of StepTerm
  Sources sources;
};

Seconds time_of(const Prediction& predicted, StepTerm term);

// A plan more likely than this to run out of memory does not fit.
inline constexpr double kRefusedChance = 0.5;
// The answer of every command to whether a plan fits. `most_chance` is what --max-oom allows.
inline bool fits_in_memory(const Prediction& predicted, double most_chance = kRefusedChance) {
  return predicted.p_oom <= most_chance;
}

struct PlannedRun {
  Plan plan;
  Prediction predicted;
};

}  // namespace tpsim
