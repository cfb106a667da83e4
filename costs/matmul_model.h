// How long one matrix product takes on a GPU, of any shape and layout.
//
// An analytic bound counts what a tiled product must do: C is cut into tiles, one per processor at
// a time; a last wave that fills only some processors takes as long as a full one (unless the
// library spreads it); each wave ends with writing its tiles; a product with few tiles may split k.
// Measured products of neighbouring shapes then correct the bound: neighbours are products with the
// same amount of output, the same fill of the last wave and a similar k, which is what run time
// depends on. Not modelled: caches, clocks (costs/op_cost.h), sparsity, fused epilogues.
#pragma once

#include <array>
#include <cstdint>

#include "core/machine/profile.h"
#include "costs/residual_field.h"

namespace tpsim {

struct MatmulShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  DType operands = DType::kBFloat16;
  double element_bytes = 2;  // of A and B, with their scales
  double output_bytes = 2;   // traffic per element of C: written, read too when accumulating
  double payload_bytes = 2;  // of an element alone
  bool aligned = true;       // rows of A, B and C are multiples of 16 bytes long
};
MatmulShape matmul_shape(const OpKey& key);
// Of several experts: a matrix of each one's own for its part of the tokens.
inline bool is_grouped_product(const OpRecord& op) {
  return op.key.kind == OpKind::kMatmul && op.key.dims[0] > 1 &&
         op.label.part == ModelPart::kExperts;
}
double flops_of(const MatmulShape& shape);

// The analytic part, term by term.
struct MatmulBound {
  Seconds time;     // latency + the greater of compute and traffic
  Seconds compute;  // waves of tiles with their epilogues
  Seconds traffic;  // all operands and C once
  std::int64_t tile_m = 0, tile_n = 0;
  std::int64_t k_splits = 1;
  double waves = 0;  // tiles over processors, not rounded
};

struct MatmulEstimate {
  Seconds time;
  MatmulBound bound;
  double correction = 1;     // measured over bound, from neighbours
  double layout_factor = 1;  // where no sample of this layout exists
  DType samples_of = DType::kBFloat16;
  bool near_samples = false;
  Seconds split_sums;  // of `time`, with kSplitSums
  Seconds wider;       // what the next type of more bits takes where a sample says less
  Seconds streamed;    // of `time`, weights or weight gradients of all experts but one
};

class MatmulModel {
 public:
  // `as_tf32`: matrix units of bf16 multiply fp32 operands, at half of their rate.
  explicit MatmulModel(const Profile& profile, bool as_tf32 = false);

  MatmulBound bound(const MatmulShape& shape) const;
  // Operands of fewer bits never take longer, but where samples near the shape say so.
  MatmulEstimate estimate(const OpKey& key) const;
  // Products of a batch's tokens with a matrix of each expert's own, in one call or beside one
  // another: as long as one product with all tokens, and the other experts' matrices moved on top.
  // Measured layers of experts take the sum of both and not the greater: decision 60.
  MatmulEstimate estimate_grouped(const OpKey& key) const;
  // What sums outside the matrix units add; zero without kSplitSums.
  Seconds split_sum_time(const OpKey& key) const;
  std::size_t samples() const;

 private:
  struct Tile {
    std::int64_t m = 1, n = 1;
    double rate = 1;  // of the largest tile's FLOP/s
  };

  void choose_tiles();
  bool leaves_matrix_units(const MatmulShape& shape) const;
  FlopsPerSecond fallback_rate() const;
  double waves_of(const MatmulShape& shape, const Tile& tile) const;
  Seconds compute_time(const MatmulShape& shape, const Tile& tile, std::int64_t k_splits) const;
  FieldPoint point_of(const MatmulShape& shape) const;
  MatmulEstimate estimate_alone(const OpKey& key) const;
  DType samples_for(DType operands, unsigned layout) const;
  bool has_samples(DType operands) const;
  double layout_factor(unsigned layout) const;
  FlopsPerSecond peak_for(const MatmulShape& shape) const;
  Seconds fastest_possible(const MatmulShape& shape) const;

  DeviceFacts device_;
  DeviceModel model_;
  std::array<Tile, 8> tiles_;
  // By layout, the transpose bits of OpKey::variant, of 16-bit operands; by the narrow types, of
  // one layout each; by layout of fp32 operands. Other units multiply those: no sample corrects
  // both.
  std::array<ResidualField, 12> fields_;
  bool as_tf32_ = false;
  double best_flops_share_ = 0;    // of the peak, reached by any sample
  double best_traffic_share_ = 0;  // of memory bandwidth
};

}  // namespace tpsim
