// Terms of the step time, for the busiest stage. They sum to the step time.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/base/enum_words.h"

namespace tpsim {

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

// A set of terms.
class StepTerms {
 public:
  constexpr StepTerms(std::initializer_list<StepTerm> terms = {}) {
    for (const StepTerm term : terms) bits_ |= bit(term);
  }
  constexpr void add(StepTerm term) { bits_ |= bit(term); }
  constexpr bool contains(StepTerm term) const { return (bits_ & bit(term)) != 0; }

 private:
  static constexpr std::uint32_t bit(StepTerm term) {
    return std::uint32_t{1} << static_cast<int>(term);
  }
  std::uint32_t bits_ = 0;
};

}  // namespace tpsim
