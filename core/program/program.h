// The program of a rank: every op with its sizes, every collective with its group and bytes, every
// allocation and free, in the order in which the reference model issues them.
//
// A Program is a trace. It holds no tensors; whoever prices or times it works from these records.
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
  // Rows are tokens (or probability rows), cols the width of one row. dims: rows, cols.
  kNormForward,  // variant: NormKind
  // variant: NormKind, bit 1: with residual, from bit 2: dtype of the gradients it adds to
  kNormBackward,
  // dims: batch*heads, query rows, key cols, reach of a window or chunk; variant: AttentionVariant
  kSoftmaxForward,
  kSoftmaxBackward,  // the same
  // dims: batch, queries, heads, kv_heads, head_dim, keys where there are more of them than
  // queries, and where it matters the reach and the width of values; variant: AttentionVariant
  kFlashForward,
  kFlashBackward,     // the same
  kBiasGeluForward,   // variant bit 0: with bias; from bit 1: MlpKind
  kBiasGeluBackward,  // the same
  kSwigluForward,     // variant: 0 of SwiGLU, else MlpKind
  kSwigluBackward,
  kBiasResidual,        // variant bit 0: with bias, bit 1: with residual; bit 0 alone adds in place
  kDropoutForward,      // dims: rows, cols; variant bit 0: with bias, bit 1: with residual
  kDropoutBackward,     // dims: rows, cols
  kColumnSum,           // variant: dtype of the sums
  kRotary,              // dims: rows, heads, turned part of head_dim; variant 1: neighbours
  kHeadNormForward,     // dims: rows, heads, head_dim
  kHeadNormBackward,    // the same
  kSoftCapForward,      // dims: elements
  kSoftCapBackward,     // dims: elements
  kPositionScale,       // dims: rows, heads, head_dim
  kHeadSum,             // dims: rows, heads, width
  kColumnBias,          // dims: rows, cols
  kColumnBiasGradient,  // dims: rows, cols; variant: dtype of the sums
  kEmbeddingForward,    // dims: tokens, hidden, local vocabulary
  kEmbeddingBackward,   // the same; variant: dtype of the table's gradient
  kPositionForward,     // dims: tokens, hidden
  kPositionBackward,    // variant: dtype of the table's gradient
  kRouteForward,        // dims: tokens, experts, capacity, experts of a token
  kRouteBackward,       // dims: tokens, experts, experts of a token
  kPermuteTokens,       // dims: tokens, hidden, experts, capacity, experts of a token; variant 1
                        // weighted
  kUnpermuteTokens,     // the same
  kRouteWeightGradient,   // dims as these
  kVocabMax,              // dims: tokens, local vocabulary; variant 1 with sums
  kVocabSums,             // the same, variant 0
  kVocabRescale,          // dims: tokens
  kCrossEntropyLoss,      // dims: tokens
  kCrossEntropyBackward,  // dims: tokens, local vocabulary
  kAdd,                   // dims: elements; these are flat
  kScale,
  kFill,
  kCopy,
  kCopyMatrices,  // dims: matrices, rows, cols
  kCast,          // dtype: of the source; variant: dtype of the destination
  kSumSquares,
  kAdamW,  // dtype: of the updated weights; variant: dtype of the gradients
  kInitNormal,

  // No device computes these: they are traced and priced (kernels/recurrence_records.h,
  // kernels/planned_records.h).
  kConvolutionForward,   // dims: tokens, channels, taps
  kConvolutionBackward,  // the same
  // dims: tokens, heads, heads of keys, width of keys, width of values, chunk, decays of a head
  // where there are several; variant: MixerKind
  kScanForward,
  kScanBackward,  // the same
  kGateForward,   // dims: tokens, width; variant 1: normed before
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
    "copy_matrices cast sum_squares adamw init_normal convolution_forward convolution_backward "
    "scan_forward scan_backward gate_forward gate_backward planned_forward planned_backward");
inline constexpr int kOpKindCount = static_cast<int>(OpKind::kInitNormal) + 1;  // with kernels

// Bits of OpKey::variant for kMatmul: C[m,n] (+)= op(A) op(B), row-major.
enum MatmulVariant : std::uint8_t {
  kTransposeA = 1,
  kTransposeB = 2,
  kAccumulate = 4,     // adds to C
  kOutputFloat32 = 8,  // C is fp32 while A and B are narrower
  kSplitSums = 16,     // partial sums of 8-bit products leave the matrix units for fp32
  kSumsRows = 32,      // of experts: k counts the tokens, as kTransposeA says with 16 bits
};

// Bits of OpKey::variant of attention's core: what changes a score on its way to a probability.
enum AttentionVariant : std::uint8_t { kAlibiBias = 1, kChunked = 2, kCapped = 4, kSinks = 8 };

using OpDims = std::array<std::int64_t, 8>;

// What decides how long an op takes: two ops with equal keys take equal time.
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

struct OpRecord {
  OpKey key;
  double flops = 0;  // multiply and add count two
  double bytes = 0;  // least traffic to and from device memory
  Label label;
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
  kData,  // ranks that hold the same weights: data x context parallel
  kPipeline,
  kEmbedding,
  kModel,
  kWorld,
  kContext,       // ranks that share the sequences
  kExpert,        // ranks that share out the experts
  kExpertData,    // ranks that hold the same experts
  kExpertTensor,  // ranks that share every expert, where these are not the tensor group
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
  // Size of the whole array: what every rank ends with (all-gather, all-to-all), or starts from
  // (reduce-scatter), as nccl-tests count.
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
  kHost  // not the device's: optimizer state in the host's memory
};
template <>
inline constexpr auto kEnumNames<MemoryCategory> = std::to_array<std::string_view>(
    {"weights", "gradients", "optimizer", "activations", "workspace", "communication", "host"});
inline constexpr int kMemoryCategoryCount = 6;  // of the device

struct AllocationRecord {
  std::int64_t bytes = 0;
  MemoryCategory category{};
  const char* label = "";
};

struct ProgramEvent {
  enum class Kind : std::uint8_t { kOp, kCollective, kAllocate, kFree } kind;
  std::uint32_t index = 0;  // into ops, collectives, or (allocate and free) allocations
};

struct Program {
  std::vector<OpRecord> ops;
  std::vector<CollectiveRecord> collectives;
  std::vector<AllocationRecord> allocations;
  std::vector<ProgramEvent> events;
};

bool is_flash(OpKind);
bool is_softmax(OpKind);
bool is_scan(OpKind);
bool runs_on_matrix_units(OpKind);  // products and flash attention
// Reads whole rows or columns before it can write: slower than a pass of one element at a time.
bool is_reduction(OpKind);

// "matmul nt 1x4096x10752x14336 bf16": one line for tables and profiles.
std::string to_string(const OpKey& key);

}  // namespace tpsim

template <>
struct std::hash<tpsim::OpKey> {
  std::size_t operator()(const tpsim::OpKey& key) const noexcept;
};
