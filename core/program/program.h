// The program of a rank: every op with its sizes, every collective with its group and bytes, every
// allocation and free. Events are in the order in which the reference model issues them.
//
// A Program is a trace without tensors; pricing and timing use only these records.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/program/label.h"

namespace tpsim {

enum class OpKind : std::uint8_t {
  kMatmul,  // dims: batch, m, n, k; variant: MatmulVariant bits
  // Rows are tokens (or rows of probabilities), cols is the width of a row. dims: rows, cols.
  kNormForward,  // variant: NormKind
  // variant: NormKind, bit 1: with residual, from bit 2: dtype of the accumulated gradients
  kNormBackward,
  // dims: batch*heads, query rows, key cols, reach of a window or chunk; variant: AttentionVariant
  kSoftmaxForward,
  kSoftmaxBackward,  // the same
  // dims: batch, queries, heads, kv_heads, head_dim, then only if they differ from the default:
  // keys, reach, width of values; variant: AttentionVariant
  kFlashForward,
  kFlashBackward,     // the same
  kBiasGeluForward,   // variant bit 0: with bias; from bit 1: MlpKind
  kBiasGeluBackward,  // the same
  kSwigluForward,     // variant: 0 for SwiGLU, else MlpKind
  kSwigluBackward,
  kBiasResidual,        // variant bit 0: with bias, bit 1: with residual; bit 0 alone adds in place
  kDropoutForward,      // dims: rows, cols; variant bit 0: with bias, bit 1: with residual
  kDropoutBackward,     // dims: rows, cols
  kColumnSum,           // variant: dtype of the sums
  kRotary,              // dims: rows, heads, rotated part of head_dim; variant 1: adjacent pairs
  kHeadNormForward,     // dims: rows, heads, head_dim
  kHeadNormBackward,    // the same
  kSoftCapForward,      // dims: elements
  kSoftCapBackward,     // dims: elements
  kPositionScale,       // dims: rows, heads, head_dim
  kHeadSum,             // dims: rows, heads, width
  kColumnBias,          // dims: rows, cols
  kColumnBiasGradient,  // dims: rows, cols; variant: dtype of the sums
  kEmbeddingForward,    // dims: tokens, hidden, local vocab size
  kEmbeddingBackward,   // the same; variant: dtype of the table's gradient
  kPositionForward,     // dims: tokens, hidden
  kPositionBackward,    // variant: dtype of the table's gradient
  kRouteForward,        // dims: tokens, experts, capacity, experts per token
  kRouteBackward,       // dims: tokens, experts, experts per token
  kPermuteTokens,       // dims: tokens, hidden, experts, capacity, experts per token; variant 1:
                        // weighted
  kUnpermuteTokens,     // the same
  kRouteWeightGradient,   // dims: the same
  kVocabMax,              // dims: tokens, local vocab size; variant 1: with sums
  kVocabSums,             // the same, variant 0
  kVocabRescale,          // dims: tokens
  kCrossEntropyLoss,      // dims: tokens
  kCrossEntropyBackward,  // dims: tokens, local vocab size
  kAdd,                   // dims: elements, also for the next three
  kScale,
  kFill,
  kCopy,
  kCopyMatrices,  // dims: matrices, rows, cols
  kCast,          // dtype: of the source; variant: dtype of the destination
  kSumSquares,
  kAdamW,  // dtype: of the updated weights; variant: dtype of the gradients
  kAxpby,  // dtype: of x; variant: dtype of y, with kReadsY if y is read
  kInitNormal,

  // Traced and priced only; no device has kernels for them (kernels/recurrence_records.h,
  // kernels/planned_records.h).
  kConvolutionForward,   // dims: tokens, channels, taps
  kConvolutionBackward,  // the same
  // dims: tokens, heads, key heads, key width, value width, chunk, decays per head if more than
  // one; variant: MixerKind
  kScanForward,
  kScanBackward,  // the same
  kGateForward,   // dims: tokens, width; variant 1: norm before the gate
  kGateBackward,  // the same
  // kernels/planned_records.h. dims: FLOPs, bytes; variant 1: on matrix units
  kPlannedForward,
  kPlannedBackward,
};
template <>
inline constexpr auto kEnumNames<OpKind> = words<static_cast<int>(OpKind::kPlannedBackward) + 1>(
    "matmul norm_forward norm_backward softmax_forward softmax_backward flash_forward "
    "flash_backward bias_gelu_forward bias_gelu_backward swiglu_forward swiglu_backward "
    "bias_residual dropout_forward dropout_backward column_sum rotary head_norm_forward "
    "head_norm_backward soft_cap_forward soft_cap_backward position_scale head_sum column_bias "
    "column_bias_gradient embedding_forward embedding_backward position_forward position_backward "
    "route_forward route_backward dispatch_tokens combine_tokens route_weight_gradient vocab_max "
    "vocab_sums vocab_rescale cross_entropy_loss cross_entropy_backward add scale fill copy "
    "copy_matrices cast sum_squares adamw axpby init_normal convolution_forward "
    "convolution_backward scan_forward scan_backward gate_forward gate_backward planned_forward "
    "planned_backward");
inline constexpr int kOpKindCount = static_cast<int>(OpKind::kInitNormal) + 1;  // with kernels

template <OpKind... kKinds>
constexpr bool is_any_of(OpKind kind) {
  return ((kind == kKinds) || ...);
}
constexpr bool is_flash(OpKind kind) {
  return is_any_of<OpKind::kFlashForward, OpKind::kFlashBackward>(kind);
}
constexpr bool is_softmax(OpKind kind) {
  return is_any_of<OpKind::kSoftmaxForward, OpKind::kSoftmaxBackward>(kind);
}
constexpr bool is_scan(OpKind kind) {
  return is_any_of<OpKind::kScanForward, OpKind::kScanBackward>(kind);
}
// GEMMs and flash attention.
constexpr bool runs_on_matrix_units(OpKind kind) {
  return kind == OpKind::kMatmul || is_flash(kind);
}
// Whether the op reads whole rows or columns before it writes. Such ops are slower than elementwise
// ops.
constexpr bool is_reduction(OpKind kind) {
  using enum OpKind;
  return is_softmax(kind) || is_scan(kind) ||
         is_any_of<kNormForward, kNormBackward, kColumnSum, kEmbeddingBackward, kPositionBackward,
                   kRouteForward, kRouteBackward, kRouteWeightGradient, kVocabMax, kVocabSums,
                   kGateForward, kGateBackward, kPlannedForward, kPlannedBackward>(kind);
}

// Bits of OpKey::variant for kMatmul: C[m,n] (+)= op(A) op(B), row-major.
enum MatmulVariant : std::uint8_t {
  kTransposeA = 1,
  kTransposeB = 2,
  kAccumulate = 4,     // adds to C
  kOutputFloat32 = 8,  // C is fp32 while A and B are narrower
  kSplitSums = 16,     // partial sums of 8-bit GEMMs are promoted to fp32 outside the matrix units
  kSumsRows =
      32,  // experts: k is the number of tokens (wgrad); 16-bit GEMMs have kTransposeA instead
};

// Bit of OpKey::variant for kAxpby: y is read, because its factor is not 0.
inline constexpr std::uint8_t kReadsY = 16;

// Bits of OpKey::variant for attention cores: changes of the scores before the softmax.
// Bit of OpKey::variant for kNormBackward: a constant is added to the gain (Gemma).
inline constexpr std::uint8_t kOffsetNorm = 32;
// Bits for kRotary: adjacent pairs; given frequencies or a magnitude (LLaMA 3.1, YaRN).
enum RotaryVariant : std::uint8_t { kAdjacentPairs = 1, kScaledRotary = 2 };
enum AttentionVariant : std::uint8_t { kAlibiBias = 1, kChunked = 2, kCapped = 4, kSinks = 8 };

using OpDims = std::array<std::int64_t, 8>;

// The properties that determine an op's time: ops with equal keys take equal time.
struct OpKey {
  OpKind kind{};
  DType dtype{};
  std::uint8_t variant = 0;
  OpDims dims{};
  friend bool operator==(const OpKey&, const OpKey&) = default;
  friend bool operator<(const OpKey& a, const OpKey& b) {  // arrays have no <=> in libc++ 13
    return std::tie(a.kind, a.dtype, a.variant, a.dims) <
           std::tie(b.kind, b.dtype, b.variant, b.dims);
  }
};

inline constexpr std::uint32_t kNoAllocation = ~std::uint32_t{0};

struct OpRecord {
  OpKey key;
  double flops = 0;  // a multiply-add counts two
  double bytes = 0;  // minimum bytes read from and written to device memory
  Label label;
  // Allocation of a GEMM's first operand; in a Program its index. kNoAllocation: not recorded.
  std::uint32_t input = kNoAllocation;
};

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kSend,
  kReceive,
  kAllToAll,
};
template <>
inline constexpr auto kEnumNames<CollectiveKind> =
    words<7>("all_reduce all_gather reduce_scatter broadcast send receive all_to_all");
enum class GroupKind : std::uint8_t {
  kTensor,
  kData,  // ranks with the same weights: data x context parallel
  kPipeline,
  kEmbedding,
  kModel,
  kWorld,
  kContext,       // ranks that split the sequences
  kExpert,        // ranks that split the experts
  kExpertData,    // ranks with the same experts
  kExpertTensor,  // ranks that split every expert, if not the tensor group
};
template <>
inline constexpr auto kEnumNames<GroupKind> = words<10>(
    "tensor data pipeline embedding model world context expert expert_data expert_tensor");
inline constexpr std::size_t kGroupKindCount =
    static_cast<std::size_t>(GroupKind::kExpertTensor) + 1;

struct CollectiveRecord {
  CollectiveKind kind{};
  GroupKind group{};
  std::int64_t ranks = 1;
  // Size of the whole array, as in nccl-tests: the result of each rank (all-gather, all-to-all) or
  // its input (reduce-scatter).
  std::int64_t bytes = 0;
  Label label;
};

enum class MemoryCategory : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,
  kWorkspace,
  kCommunication,
  kHost  // optimizer state in host memory, not on the device
};
template <>
inline constexpr auto kEnumNames<MemoryCategory> = std::to_array<std::string_view>(
    {"weights", "gradients", "optimizer", "activations", "workspace", "communication", "host"});
inline constexpr int kMemoryCategoryCount = 6;  // on the device

// Contents of allocations that software may size or store otherwise than the reference model.
enum class AllocationRole : std::uint8_t {
  kOther,
  // Tokens for this rank's experts. Without dropping, the size depends on the router's choices.
  kExpertTokens,
  kExpertActivation,  // the same tokens after the experts' activation function
  kMasterWeights,
};

struct AllocationRecord {
  std::int64_t bytes = 0;
  MemoryCategory category{};
  const char* label = "";
  AllocationRole role = AllocationRole::kOther;
};
inline bool holds_expert_tokens(const AllocationRecord& made) {
  return made.role == AllocationRole::kExpertTokens ||
         made.role == AllocationRole::kExpertActivation;
}

struct ProgramEvent {
  enum class Kind : std::uint8_t { kOp, kCollective, kAllocate, kFree } kind;
  std::uint32_t index = 0;  // into ops, collectives or allocations (kAllocate, kFree)
};

struct Program {
  std::vector<OpRecord> ops;
  std::vector<CollectiveRecord> collectives;
  std::vector<AllocationRecord> allocations;
  std::vector<ProgramEvent> events;
};

// One line for tables and profiles: "matmul nt 1x4096x10752x14336 bf16".
std::string to_string(const OpKey& key);

}  // namespace tpsim

template <>
struct std::hash<tpsim::OpKey> {
  std::size_t operator()(const tpsim::OpKey& key) const noexcept;
};
