// Counts of work on the emulated GPU.
#pragma once

#include <cstdint>

namespace tpsim::emulated {

struct Counts {
  std::int64_t kernels = 0;   // tpsim's own kernels
  std::int64_t products = 0;  // GEMMs by cuBLASLt
  std::int64_t copies = 0;
  std::int64_t host_waits = 0;  // for a stream or an event
  // Warp instructions.
  std::int64_t tile_products = 0;       // mma
  std::int64_t fragment_loads = 0;      // ldmatrix
  std::int64_t warpgroup_products = 0;  // one warp's part of wgmma
};

// Returns the counts since the program started.
Counts counts();
// Increments a counter. Requires at_work().
void count(std::int64_t Counts::*what);

}  // namespace tpsim::emulated
