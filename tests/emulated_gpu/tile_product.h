// The arithmetic of tensor cores: one product of two tiles, as mma.m16n8k16 takes them.
#pragma once

#include <array>
#include <cstddef>

namespace tpsim::emulated {

// Of a depth of 16.
template <std::size_t kWidth>
using Tile = std::array<std::array<float, kWidth>, 16>;

// left^T right, each sum from k = 0 on. Compiled apart, optimised and without sanitizers: what
// kernels read and write has been checked when a tile is filled.
Tile<8> tile_product(const Tile<16>& left, const Tile<8>& right);

}  // namespace tpsim::emulated
