// Ops that plans price from their sizes and that no device executes: parts of newer families
// beside, or in place of, attention, recurrences and feed-forward parts. Plain values, no
// parallelism.
//
// An indexer that chooses positions, compressed keys, hyper-connections, gates of low rank, an
// encoder of pictures: each is a list of matrices, of scores between positions, and of passes over
// elements. Parameters and FLOPs follow from the list exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_words.h"

namespace tpsim {

// kLinear: a matrix that tokens are multiplied by. kPairs: scores between queries and the keys that
// they see, and the sum of values. kPass: elementwise work, norms included.
enum class PlannedOpKind : std::uint8_t { kLinear, kPairs, kPass };
template <>
inline constexpr auto kEnumNames<PlannedOpKind> =
    std::to_array<std::string_view>({"linear", "pairs", "pass"});

// How tensor-parallel ranks share an op. kWhole: each rank does all of it, on all tokens. kTokens:
// each rank has all weights, and its share of the tokens under sequence parallelism. kRows: a rank
// has a share of the matrix's rows, of heads, or of the width. kColumns: a rank has a share of the
// matrix's columns, and results are partial sums.
enum class PlannedSharding : std::uint8_t { kWhole, kTokens, kRows, kColumns };
template <>
inline constexpr auto kEnumNames<PlannedSharding> =
    std::to_array<std::string_view>({"whole", "tokens", "rows", "columns"});

// Sizes of the whole model. Fields that the kind does not use stay 0.
struct PlannedOp {
  std::string name;
  PlannedOpKind kind = PlannedOpKind::kPass;
  PlannedSharding sharding = PlannedSharding::kWhole;
  std::int64_t width = 0;  // kLinear: rows of the matrix; else elements a token saved for backward
  std::int64_t columns = 0;     // kLinear: columns of the matrix
  std::int64_t parameters = 0;  // trained parameters beside the matrix: norms, biases, tables
  std::int64_t moved = 0;       // kPass: elements a token that forward reads and writes
  // kPairs: FLOPs of a pair are 2 heads (key_dim + value_dim).
  std::int64_t heads = 0, key_dim = 0, value_dim = 0;
  // kPairs: a query sees the last `window` positions, and at most `most` (0: all) of the keys that
  // stand for `stride` earlier positions each (0: none of these). kLinear: one row of the input for
  // `stride` tokens.
  std::int64_t window = 0, stride = 0, most = 0;
  friend bool operator==(const PlannedOp&, const PlannedOp&) = default;
};

// A part around the blocks, planned on the first stage: an encoder of pictures or sound, or tables
// of each layer.
struct OuterPart {
  std::string name;
  std::int64_t layers = 0;   // each of layer_ops
  std::int64_t patches = 0;  // of an item; they attend to each other. 0: ops run on the sequence
  std::int64_t items = 0;    // pictures or sounds in a training sequence
  std::vector<PlannedOp> layer_ops, ops;
  friend bool operator==(const OuterPart&, const OuterPart&) = default;
};

// Pairs that the op computes over a sequence of `seq` positions, by position and summed. Inside
// encoders (`causal` false) each of `seq` positions sees all others.
double planned_pairs(const PlannedOp& op, std::int64_t seq);

std::int64_t planned_parameters(const PlannedOp& op);
std::int64_t planned_parameters(const std::vector<PlannedOp>& ops);
std::int64_t planned_parameters(const OuterPart& part);

// Rows of the input that a linear op takes for `tokens` tokens.
std::int64_t planned_rows(const PlannedOp& op, std::int64_t tokens);

// Forward FLOPs for one sequence of `seq` tokens. Pairs count as in the papers: the full square of
// a causal core, and the share of it that a query sees.
struct PlannedFlops {
  double pairs = 0, linear = 0;
  double total() const { return pairs + linear; }
};
PlannedFlops planned_flops(const std::vector<PlannedOp>& ops, std::int64_t seq);
double planned_flops(const OuterPart& part, std::int64_t seq);

}  // namespace tpsim
