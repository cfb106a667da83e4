// The prediction for a plan. Plain values, filled by sim/ and read by plans/, cli/ and gui/.
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

// Terms of the step time, for the busiest stage. They sum to the step time.
enum class StepTerm : std::uint8_t {
  // Device work in forward and backward.
  kMatmul,                // linear layers
  kAttention,             // scores, softmax, values
  kRecurrence,            // convolutions, scans and gates of Mamba-2 and of gated delta nets
  kElementwise,           // norms, activations, residuals, embedding, loss
  kTensorCommunication,   // collectives of the tensor group
  kZeroCommunication,     // ZeRO 2 and 3: gathers and reductions of every layer
  kContextCommunication,  // keys and values in the context group
  kExpertCommunication,   // dispatch and combine of tokens
  kGroupedProducts,       // grouped GEMMs of experts
  kPermute,               // routing, permute and unpermute
  kImbalance,             // waiting for the rank with the most tokens

  kHostWait,           // the device waits for the host to issue work
  kTransfer,           // activation sends, and gathers of received activations
  kBubble,             // waiting for other stages
  kGradientReduction,  // over the data-parallel group, exposed part
  kTiedEmbedding,
  kClipping,
  kOptimizer,
  kWeightGather,
  kHostStep,              // once per step: logging, learning-rate schedule
  kStragglers,            // waiting for the slowest rank
  kUncalibratedOverhead,  // expected for software without calibration
};
template <>  // names in files; keep stable
inline constexpr auto kEnumNames<StepTerm> = words<22>(
    "matmul attention recurrence elementwise tensor_communication zero_communication "
    "context_communication expert_communication grouped_products permutation expert_imbalance "
    "host_wait pipeline_transfer pipeline_bubble gradient_reduction tied_embedding "
    "gradient_clipping optimizer weight_gather host_step stragglers unmodelled");
inline constexpr auto kStepTerms = all_of<StepTerm>();
inline constexpr auto kWorkTerms = all_up_to<StepTerm::kImbalance>();

// One term of the step time, with its formula.
struct Term {
  StepTerm kind{};
  Seconds time;
  std::string formula;  // in words and symbols
  std::string inputs;   // values of the symbols for this plan
  std::string source;   // of the constants
};

struct StageMemory {
  std::int64_t stage = 0;
  std::array<Bytes, kMemoryCategoryCount> by_category{};  // at the moment of the peak
  Bytes context;
  Bytes fragmentation;
  Bytes total() const;
};

// Shares of the device time by the source of the op times.
struct Sources {
  double exact_entries = 0;         // op found in the profile
  double interpolated_entries = 0;  // interpolated between measured entries
  double model = 0;                 // from DeviceModel constants
};

struct Prediction {
  Seconds step;
  Seconds step_low;  // 90 % interval
  Seconds step_high;
  double hardware_tflops_per_gpu = 0;  // includes recompute
  double model_tflops_per_gpu = 0;     // without recompute; causal attention as full square
  // Model TFLOP/s with half of the attention square, as Megatron logs since 2024.
  double half_mask_tflops_per_gpu = 0;
  double mfu = 0;  // model FLOPs over the peak for the linear layers' operand dtype
  double tokens_per_s = 0;
  double bubble_fraction = 0;  // idle share of the pipeline phase, mean over stages
  Bytes capacity;              // of one device
  Bytes peak;                  // of the fullest stage
  double p_oom = 0;            // probability that the fullest stage does not fit
  // With optimizer offload: memory used on a node's host by its GPUs, and available.
  Bytes host_memory, host_capacity;
  std::vector<StageMemory> memory;
  std::vector<Term> breakdown;  // every term, in the order of StepTerm
  Sources sources;
};

Seconds time_of(const Prediction& predicted, StepTerm term);

// A plan with a higher probability of running out of memory does not fit.
inline constexpr double kRefusedChance = 0.5;
// Whether a plan fits in memory. `most_chance` is the value of --max-oom.
inline bool fits_in_memory(const Prediction& predicted, double most_chance = kRefusedChance) {
  return predicted.p_oom <= most_chance;
}

struct PlannedRun {
  Plan plan;
  Prediction predicted;
};

}  // namespace tpsim
