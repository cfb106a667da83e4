// Names of the dimensions of ops. OpKey::dims holds them in the order of these enumerators; OpKind
// lists the dimensions of each op. A name that the op does not have is a bug.
#pragma once

#include <cstdint>

#include "core/base/check.h"
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
  using enum OpKind;
  return is_any_of<kNormForward, kNormBackward, kBiasGeluForward, kBiasGeluBackward, kSwigluForward,
                   kSwigluBackward, kBiasResidual, kDropoutForward, kDropoutBackward, kColumnSum,
                   kColumnBias, kColumnBiasGradient, kEmbeddingForward, kEmbeddingBackward,
                   kPositionForward, kPositionBackward, kRouteForward, kRouteBackward, kVocabMax,
                   kVocabSums, kCrossEntropyBackward>(kind);
}
constexpr bool has_dims(OpKind kind, HeadDim /*dim*/) {
  using enum OpKind;
  return is_any_of<kRotary, kHeadNormForward, kHeadNormBackward, kPositionScale, kHeadSum>(kind);
}
constexpr bool has_dims(OpKind kind, ScoreDim /*dim*/) { return is_softmax(kind); }
constexpr bool has_dims(OpKind kind, FlashDim /*dim*/) { return is_flash(kind); }
constexpr bool has_dims(OpKind kind, PermuteDim /*dim*/) {
  using enum OpKind;
  return is_any_of<kPermuteTokens, kUnpermuteTokens, kRouteWeightGradient>(kind);
}
constexpr bool has_dims(OpKind kind, ElementDim /*dim*/) {
  using enum OpKind;
  return is_any_of<kSoftCapForward, kSoftCapBackward, kVocabRescale, kCrossEntropyLoss, kAdd,
                   kScale, kFill, kCopy, kCast, kSumSquares, kAdamW, kAxpby, kInitNormal>(kind);
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
