#include "sim/matmul_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tpsim {
namespace {

double ceil_div(std::int64_t a, std::int64_t b) {
  const std::int64_t whole = (a + b - 1) / b;
  return static_cast<double>(whole);
}

// Tiles that a library chooses from, as shares of the device's largest, with what each keeps of the
// large tile's rate: a smaller tile reads more operand bytes per FLOP.
struct TileChoice {
  int m_divisor, n_divisor;
  double rate;
};
constexpr std::array<TileChoice, 4> kTiles = {{{1, 1, 1.0}, {1, 2, 0.9}, {2, 2, 0.75}, {2, 4, 0.55}}};

}  // namespace

MatmulShape matmul_shape(const OpKey& key) {
  MatmulShape shape{.batch = key.dims[0], .m = key.dims[1], .n = key.dims[2], .k = key.dims[3]};
  shape.element_bytes = static_cast<double>(size_of(key.dtype));
  const double c = (key.variant & kOutputFloat32) != 0 ? 4.0 : shape.element_bytes;
  shape.output_bytes = (key.variant & kAccumulate) != 0 ? 2 * c : c;
  return shape;
}

MatmulModel::MatmulModel(const Profile& profile) : device_(profile.device), model_(profile.model) {}

MatmulBound MatmulModel::bound(const MatmulShape& s) const {
  const double batch = static_cast<double>(s.batch);
  const double m = static_cast<double>(s.m);
  const double n = static_cast<double>(s.n);
  const double k = static_cast<double>(s.k);
  const FlopsPerSecond per_processor =
      model_.matmul_efficiency * device_.matmul_peak / static_cast<double>(device_.processors);
  MatmulBound best;
  best.compute = Seconds(INFINITY);
  for (const TileChoice& tile : kTiles) {
    const std::int64_t tile_m = std::max<std::int64_t>(1, model_.tile_m / tile.m_divisor);
    const std::int64_t tile_n = std::max<std::int64_t>(1, model_.tile_n / tile.n_divisor);
    const double tiles = batch * ceil_div(s.m, tile_m) * ceil_div(s.n, tile_n);
    const double waves = tiles / static_cast<double>(device_.processors);
    const Flops per_tile(2.0 * static_cast<double>(tile_m * tile_n) * k);
    const Seconds compute = std::ceil(waves) * (per_tile / (tile.rate * per_processor));
    if (compute < best.compute) {
      best.compute = compute;
      best.tile_m = tile_m;
      best.tile_n = tile_n;
      best.waves = waves;
    }
  }
  const Bytes traffic(batch * ((m * k + n * k) * s.element_bytes + m * n * s.output_bytes));
  best.memory = traffic / (model_.streaming_efficiency * device_.memory_bandwidth);
  best.time = std::max(best.compute, best.memory) + model_.matmul_latency;
  return best;
}

}  // namespace tpsim
