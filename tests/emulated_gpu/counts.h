// What a program has asked of the emulated GPU.
#pragma once

#include <cstdint>

namespace tpsim::emulated {

struct Counts {
  std::int64_t kernels = 0;   // of tpsim's own
  std::int64_t products = 0;  // by cuBLASLt
  std::int64_t copies = 0;
  std::int64_t host_waits = 0;  // for a stream or an event
  // Instructions of warps.
  std::int64_t tile_products = 0;       // mma
  std::int64_t fragment_loads = 0;      // ldmatrix
  std::int64_t warpgroup_products = 0;  // a warp's part of wgmma
};

// Since the program began.
Counts counts();
// One more. Demands at_work().
void count(std::int64_t Counts::*what);

}  // namespace tpsim::emulated
