// How wgmma is told where a matrix lies in shared memory (PTX ISA, "Matrix descriptor format" and
// "Canonical layouts" of wgmma), for tiles of 16-bit elements with swizzling over 128 bytes: panels
// of 64 columns, rows of 128 bytes, the eight pieces of 16 bytes of a row exchanged by the row's
// number as in fragments.h. Plain arithmetic, so that tests hold it against the emulated
// instruction.
#pragma once

#include <cstdint>

#include "kernels/cuda/tiles/fragments.h"

namespace tpsim {

inline constexpr int kPanelColumns = 64;
inline constexpr int kPanelRowBytes = 128;
inline constexpr int kPanelAlignment = 1024;  // of a tile: eight rows, in which swizzling repeats

// Index, in chunks, of a piece of a tile of `rows` rows, a multiple of 8.
constexpr int panelled(int row, int chunk, int rows) {
  constexpr int kChunks = kPanelColumns / kChunk;
  return chunk / kChunks * rows * kChunks + swizzled(row, chunk % kChunks, kChunks);
}

// `address` in shared memory, a multiple of 16. panel: bytes from one panel to the next; read where
// columns run along N and there are more than 64 of them.
constexpr std::uint64_t matrix_descriptor(unsigned address, unsigned panel) {
  constexpr std::uint64_t kSwizzle128 = 1, kEightRows = 8 * kPanelRowBytes;
  return (address & 0x3ffffU) >> 4U | std::uint64_t{(panel & 0x3ffffU) >> 4U} << 16U |
         (kEightRows >> 4U) << 32U | kSwizzle128 << 62U;
}

// The descriptor of what lies `bytes` further on.
constexpr std::uint64_t moved(std::uint64_t descriptor, unsigned bytes) {
  return descriptor + (bytes >> 4U);
}

// From 16 columns of a tile of `rows` rows to the next 16, k = 0, 1, ... of them, along the rows.
constexpr unsigned step_along_rows(int k, int rows) {
  constexpr int kSteps = kPanelColumns / 16;
  return static_cast<unsigned>(k / kSteps * rows * kPanelRowBytes + k % kSteps * 32);
}

}  // namespace tpsim
