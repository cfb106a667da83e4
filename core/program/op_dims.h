// Names of the dimensions of ops. OpKey::dims holds them in the order of these enumerators; OpKind
// lists the dimensions of each op. A name that the op does not have is a bug.
#pragma once

#include <cstdint>

#include "core/base/check.h"
#include "core/program/op_dims.h"
#include "core/program/program.h"

namespace tpsim {

enum class GemmDim : std::uint8_t { kBatch, kM, kN, kK };
// Ops on rows, of tokens or of probabilities.
enum class RowDim : std::uint8_t { kRows, kCols };
// Rotary embedding and norms of heads.
enum class HeadDim : std::uint8_t { kRows, kHeads, kWidth };
// Softmax over attention scores. Matrices: batch x heads.
enum class ScoreDim : std::uint8_t { kMatrices, kQueries, kKeys, kReach };
// Fused attention. 0 for keys, reach or value width: the default.
enum class FlashDim : std::uint8_t {
  kBatch,
  kQueries,
  kHeads,
  kKeyHeads,
  kWidth,
  kKeys,
  kReach,
  kValueWidth
};
// Moves between tokens and slots of experts.
enum class PermuteDim : std::uint8_t { kTokens, kHidden, kExperts, kCapacity, kChosen };
// Ops on single elements.
enum class ElementDim : std::uint8_t { kElements };
// Quantization casts that lowering adds. Traffic: 64 x bytes per element. Pass: a QuantizationPass.
enum class QuantizationDim : std::uint8_t { kElements, kTraffic, kPass };

constexpr bool has_dims(OpKind kind, GemmDim /*dim*/) { return kind == OpKind::kMatmul; }
constexpr bool has_dims(OpKind kind, RowDim /*dim*/) {
  switch (kind) {
    case OpKind::kNormForward:
    case OpKind::kNormBackward:
    case OpKind::kBiasGeluForward:
    case OpKind::kBiasGeluBackward:
    case OpKind::kSwigluForward:
    case OpKind::kSwigluBackward:
    case OpKind::kBiasResidual:
    case OpKind::kDropoutForward:
    case OpKind::kDropoutBackward:
    case OpKind::kColumnSum:
    case OpKind::kColumnBias:
    case OpKind::kColumnBiasGradient:
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
    case OpKind::kPositionForward:
    case OpKind::kPositionBackward:
    case OpKind::kRouteForward:
    case OpKind::kRouteBackward:
    case OpKind::kVocabMax:
    case OpKind::kVocabSums:
    case OpKind::kCrossEntropyBackward: return true;
    default: return false;
  }
}
constexpr bool has_dims(OpKind kind, HeadDim /*dim*/) {
  switch (kind) {
    case OpKind::kRotary:
    case OpKind::kHeadNormForward:
    case OpKind::kHeadNormBackward:
    case OpKind::kPositionScale:
    case OpKind::kHeadSum: return true;
    default: return false;
  }
}
constexpr bool has_dims(OpKind kind, ScoreDim /*dim*/) {
  return kind == OpKind::kSoftmaxForward || kind == OpKind::kSoftmaxBackward;
}
constexpr bool has_dims(OpKind kind, FlashDim /*dim*/) {
  return kind == OpKind::kFlashForward || kind == OpKind::kFlashBackward;
}
constexpr bool has_dims(OpKind kind, PermuteDim /*dim*/) {
  return kind == OpKind::kPermuteTokens || kind == OpKind::kUnpermuteTokens ||
         kind == OpKind::kRouteWeightGradient;
}
constexpr bool has_dims(OpKind kind, ElementDim /*dim*/) {
  switch (kind) {
    case OpKind::kSoftCapForward:
    case OpKind::kSoftCapBackward:
    case OpKind::kVocabRescale:
    case OpKind::kCrossEntropyLoss:
    case OpKind::kAdd:
    case OpKind::kScale:
    case OpKind::kFill:
    case OpKind::kCopy:
    case OpKind::kCast:
    case OpKind::kSumSquares:
    case OpKind::kAdamW:
    case OpKind::kAxpby:
    case OpKind::kInitNormal: return true;
    default: return false;
  }
}
constexpr bool has_dims(OpKind kind, QuantizationDim /*dim*/) { return kind == OpKind::kCast; }

template <class Dim>
std::int64_t dim_of(const OpKey& key, Dim dim) {
  TPSIM_CHECK(has_dims(key.kind, dim), "the op lacks this dimension");
  return key.dims[static_cast<std::size_t>(dim)];
}
template <class Dim>
std::int64_t& dim_of(OpKey& key, Dim dim) {
  TPSIM_CHECK(has_dims(key.kind, dim), "the op lacks this dimension");
  return key.dims[static_cast<std::size_t>(dim)];
}

// Returns the product of some dimensions.
template <class... Dims>
double product_of(const OpKey& key, Dims... dims) {
  return (static_cast<double>(dim_of(key, dims)) * ...);
}

// Elements of the slots of all experts.
inline double slot_elements(const OpKey& key) {
  return product_of(key, PermuteDim::kHidden, PermuteDim::kExperts, PermuteDim::kCapacity);
}

}  // namespace tpsim
