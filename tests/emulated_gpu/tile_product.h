// The arithmetic of tensor cores: one GEMM of two tiles, as in mma.m16n8k16.
#pragma once

#include <array>
#include <cstddef>

namespace tpsim::emulated {

// A tile with a depth of 16.
template <std::size_t kWidth>
using Tile = std::array<std::array<float, kWidth>, 16>;

// left^T right, each sum starting at k = 0. Compiled separately, optimized and without sanitizers,
// since accesses of kernels are checked when a tile is filled.
Tile<8> tile_product(const Tile<16>& left, const Tile<8>& right);

}  // namespace tpsim::emulated
