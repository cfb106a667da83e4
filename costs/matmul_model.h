// Time of a GEMM on a GPU, for any shape and layout.
//
// An analytical bound counts the work of a tiled GEMM. C is cut into tiles, and an SM computes one
// tile at a time. A partial last wave takes as long as a full one, unless the library divides its
// work among all SMs (stream-K). At the end of a wave its tiles are written to memory (epilogue). A
// GEMM with few tiles may use split-K.
//
// Measured GEMMs of similar shapes then correct the bound. Two shapes are similar if their output
// size, the fill of their last wave and their k are similar. Not modelled: caches, clocks
// (costs/op_cost.h), sparsity, fused epilogues.
#pragma once

#include <array>
#include <cstdint>

#include "core/machine/profile.h"
#include "core/program/op_dims.h"
#include "costs/residual_field.h"

namespace tpsim {

struct MatmulShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  DType operands = DType::kBFloat16;
  double element_bytes = 2;  // per element of A and B, including scales
  double output_bytes = 2;   // traffic per element of C: written, and read if accumulating
  double payload_bytes = 2;  // per element without scales
  bool aligned = true;       // rows of A, B and C are multiples of 16 bytes long
};
MatmulShape matmul_shape(const OpKey& key);
// Returns whether the op is a grouped GEMM of MoE: each expert's tokens times the expert's matrix.
inline bool is_grouped_product(const OpRecord& op) {
  return op.key.kind == OpKind::kMatmul && dim_of(op.key, GemmDim::kBatch) > 1 &&
         op.label.part == ModelPart::kExperts;
}
double flops_of(const MatmulShape& shape);

// The analytical bound, term by term.
struct MatmulBound {
  Seconds time;     // latency + max(compute, traffic)
  Seconds compute;  // waves of tiles with their epilogues
  Seconds traffic;  // one pass over A, B and C
  std::int64_t tile_m = 0, tile_n = 0;
  std::int64_t k_splits = 1;
  double waves = 0;  // tiles / SMs, not rounded
};

struct MatmulEstimate {
  Seconds time;
  MatmulBound bound;
  double correction = 1;     // measured time / bound, from similar shapes
  double layout_factor = 1;  // for transposes; 1 if there are enough samples of this layout
  DType samples_of = DType::kBFloat16;
  bool near_samples = false;
  Seconds split_sums;  // part of `time`: sums outside the tensor cores (kSplitSums)
  Seconds wider;       // time with the next wider dtype if the measured one is slower, else 0
  Seconds streamed;    // part of `time`: memory traffic of the matrices of all experts but one
};

class MatmulModel {
 public:
  // as_tf32: the tensor cores multiply fp32 operands as TF32, at half of their bf16 rate.
  explicit MatmulModel(const Profile& profile, bool as_tf32 = false);

  MatmulBound bound(const MatmulShape& shape) const;
  // Returns the time of a GEMM. With operands of 8 bits or less, this is at most the time with the
  // next wider dtype, unless samples of similar shapes are slower.
  MatmulEstimate estimate(const OpKey& key) const;
  // Grouped GEMM: one GEMM with the tokens of all experts, plus the memory traffic of the other
  // experts' matrices. Measured MoE layers take the sum of the two times, not the maximum
  // (docs/decisions/op-prices.md).
  MatmulEstimate estimate_grouped(const OpKey& key) const;
  // Returns the time to add partial sums outside the tensor cores; 0 without kSplitSums.
  Seconds split_sum_time(const OpKey& key) const;
  std::size_t samples() const;

 private:
  struct Tile {
    std::int64_t m = 1, n = 1;
    double rate = 1;  // FLOP/s over that of the largest tile
  };

  struct Speeds {
    FlopsPerSecond peak;
    BytesPerSecond memory;
  };

  void choose_tiles();
  bool leaves_matrix_units(const MatmulShape& shape) const;
  FlopsPerSecond fallback_rate() const;
  double waves_of(const MatmulShape& shape, const Tile& tile) const;
  Seconds compute_time(const MatmulShape& shape, const Tile& tile, double tile_waves,
                       std::int64_t k_splits, const Speeds& speeds) const;
  MatmulBound bound(const MatmulShape& shape, BytesPerSecond memory) const;
  Seconds measured_bound(const MatmulShape& shape) const;  // on the GPU that was measured
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
  // Fields 0-3: 16-bit operands by layout (the transpose bits of OpKey::variant). Fields 4-7: one
  // per narrow dtype. Fields 8-11: fp32 operands by layout.
  std::array<ResidualField, 12> fields_;
  bool as_tf32_ = false;
  double best_flops_share_ = 0;    // highest share of the peak in any sample
  double best_traffic_share_ = 0;  // highest share of the measured bandwidth in any sample
};

}  // namespace tpsim
