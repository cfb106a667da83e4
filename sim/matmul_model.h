// How long one matrix product takes on a GPU.
//
// A product is cut into tiles of C, one per processor at a time; a last wave that fills only some
// processors takes as long as a full one. The bound below counts waves and memory traffic; measured
// samples of neighbouring shapes correct it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/profile.h"

namespace tpsim {

struct MatmulShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double element_bytes = 2;  // of A and B
  double output_bytes = 2;   // of C, read too when accumulating
};
MatmulShape matmul_shape(const OpKey& key);

// The analytic part of the prediction, term by term.
struct MatmulBound {
  Seconds time;
  Seconds compute;  // all waves
  Seconds memory;
  std::int64_t tile_m = 0, tile_n = 0;
  double waves = 0;  // of tiles over processors, not rounded
};

class MatmulModel {
 public:
  explicit MatmulModel(const Profile& profile);
  MatmulBound bound(const MatmulShape& shape) const;

 private:
  DeviceFacts device_;
  DeviceModel model_;
};

}  // namespace tpsim
