// Planned ops: parts of newer model families that are predicted from their sizes and that no device
// executes. Plain values, no parallelism.
//
// Examples: an indexer that selects positions, compressed keys, hyper-connections, low-rank gates,
// a vision encoder. Each is a list of matrices, of scores between positions, and of elementwise
// passes. Parameters and FLOPs follow exactly from the list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_words.h"

namespace tpsim {

// kLinear: a matrix times the tokens. kPairs: scores between queries and the keys they see, and the
// weighted sum of values. kPass: elementwise work, including norms.
enum class PlannedOpKind : std::uint8_t { kLinear, kPairs, kPass };
template <>
inline constexpr auto kEnumNames<PlannedOpKind> = words<3>("linear pairs pass");

// Sharding over tensor-parallel ranks. kWhole: each rank computes the whole op for all tokens.
// kTokens: each rank has all weights, and with sequence parallelism its share of the tokens. kRows:
// a share of the matrix's rows, of heads, or of the width. kColumns: a share of the matrix's
// columns; results are partial sums.
enum class PlannedSharding : std::uint8_t { kWhole, kTokens, kRows, kColumns };
template <>
inline constexpr auto kEnumNames<PlannedSharding> = words<4>("whole tokens rows columns");

// Sizes are those of the whole model. Fields that a kind does not use stay 0.
struct PlannedOp {
  std::string name;
  PlannedOpKind kind = PlannedOpKind::kPass;
  PlannedSharding sharding = PlannedSharding::kWhole;
  std::int64_t width =
      0;  // kLinear: rows of the matrix; else elements per token saved for backward
  std::int64_t columns = 0;     // kLinear: columns of the matrix
  std::int64_t parameters = 0;  // trained parameters besides the matrix: norms, biases, tables
  std::int64_t moved = 0;       // kPass: elements per token that forward reads and writes
  // kPairs: 2 heads (key_dim + value_dim) FLOPs per pair.
  std::int64_t heads = 0, key_dim = 0, value_dim = 0;
  // kPairs: a query sees the last `window` positions and at most `most` compressed keys (0: all).
  // Each key stands for `stride` earlier positions (0: no such keys). kLinear: one row of the input
  // per `stride` tokens.
  std::int64_t window = 0, stride = 0, most = 0;
  friend bool operator==(const PlannedOp&, const PlannedOp&) = default;
};

// A part outside the blocks, planned on the first stage: a vision or audio encoder, or per-layer
// tables.
struct OuterPart {
  std::string name;
  std::int64_t layers = 0;   // number of layers; each runs layer_ops
  std::int64_t patches = 0;  // per item; they attend to each other. 0: ops run on the sequence
  std::int64_t items = 0;    // images or sounds per training sequence
  std::vector<PlannedOp> layer_ops, ops;
  friend bool operator==(const OuterPart&, const OuterPart&) = default;
};

// Query-key pairs of the op over a sequence of `seq` positions, summed over positions.
double planned_pairs(const PlannedOp& op, std::int64_t seq);

std::int64_t planned_parameters(const PlannedOp& op);
std::int64_t planned_parameters(const std::vector<PlannedOp>& ops);
std::int64_t planned_parameters(const OuterPart& part);

// Input rows of a linear op for `tokens` tokens.
std::int64_t planned_rows(const PlannedOp& op, std::int64_t tokens);

// Forward FLOPs for one sequence of `seq` tokens. Pairs count as in the papers: seq^2 for causal
// attention, times the share of the causal pairs that the op computes.
struct PlannedFlops {
  double pairs = 0, linear = 0;
  double total() const { return pairs + linear; }
};
PlannedFlops planned_flops(const std::vector<PlannedOp>& ops, std::int64_t seq);
double planned_flops(const OuterPart& part, std::int64_t seq);

}  // namespace tpsim
