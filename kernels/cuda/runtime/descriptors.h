// Matrix descriptors of wgmma for tiles in shared memory (PTX ISA, "Matrix descriptor format" and
// "Canonical layouts" of wgmma). Elements have 16 bits, with 128-byte swizzling. A tile consists of
// panels of 64 columns, whose rows have 128 bytes. The eight 16-byte chunks of a row are permuted
// by the row number, as in fragments.h. The functions are constexpr, so that tests compare them
// with the emulated instruction.
#pragma once

#include <cstdint>

#include "kernels/cuda/tiles/fragments.h"

namespace tpsim {

inline constexpr int kPanelColumns = 64;
inline constexpr int kPanelRowBytes = 128;
inline constexpr int kPanelAlignment = 1024;  // of a tile: eight rows, the swizzle period

// Returns the index, in chunks, of the chunk at (row, chunk) in a tile of `rows` rows (a multiple
// of 8).
constexpr int panelled(int row, int chunk, int rows) {
  constexpr int kChunks = kPanelColumns / kChunk;
  return chunk / kChunks * rows * kChunks + swizzled(row, chunk % kChunks, kChunks);
}

// Returns the descriptor of a tile. `address`: in shared memory, a multiple of 16. `panel`: bytes
// from one panel to the next, used if N is contiguous and exceeds 64.
constexpr std::uint64_t matrix_descriptor(unsigned address, unsigned panel) {
  constexpr std::uint64_t kSwizzle128 = 1, kEightRows = 8 * kPanelRowBytes;
  return (address & 0x3ffffU) >> 4U | std::uint64_t{(panel & 0x3ffffU) >> 4U} << 16U |
         (kEightRows >> 4U) << 32U | kSwizzle128 << 62U;
}

// Returns the descriptor of the address `bytes` after the descriptor's address.
constexpr std::uint64_t moved(std::uint64_t descriptor, unsigned bytes) {
  return descriptor + (bytes >> 4U);
}

// Returns the byte offset of the k-th group of 16 columns in a tile of `rows` rows.
constexpr unsigned step_along_rows(int k, int rows) {
  constexpr int kSteps = kPanelColumns / 16;
  return static_cast<unsigned>(k / kSteps * rows * kPanelRowBytes + k % kSteps * 32);
}

}  // namespace tpsim
