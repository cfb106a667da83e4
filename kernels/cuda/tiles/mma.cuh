// GEMMs of tiles in shared memory on tensor cores: bf16 or fp16 operands, fp32 sums.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/tiles/fragments.h"
#include "kernels/cuda/tiles/ptx.cuh"

namespace tpsim {

// Packs two adjacent elements into one register, the first in the lower half.
__device__ inline unsigned packed(float first, float second, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ inline unsigned packed(float first, float second, __half) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Returns the shared-memory address of the chunk at (row, chunk) of a tile with D columns. To
// advance kStep chunks (even) along the row, XOR the address with kStep * 16 (see swizzled()). To
// advance a multiple of 8 rows, add their bytes. The tile must be aligned to its row size.
template <int D>
__device__ inline unsigned place_address(const uint4* tile, int row, int chunk) {
  return shared_address(tile + swizzled(row, chunk, D / kChunk));
}

// sums[m][n] += rows a_row .. a_row + kM x 16 of `a` times the transpose of the first N rows of
// `b`. Both tiles have D columns.
template <class T, int D, int kM, int N>
__device__ inline void add_product_by_column(float (&sums)[kM][N / 8][4], const uint4* a, int a_row,
                                             const uint4* b) {
  constexpr unsigned kRowBytes = D * 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const TilePlace of_a = a_source(lane), of_b = b_source_by_column(lane);
  const unsigned a_place = place_address<D>(a, a_row + of_a.row, of_a.chunk);
  const unsigned b_place = place_address<D>(b, of_b.row, of_b.chunk);
#pragma unroll 2
  for (int k = 0; k < D / 16; ++k) {
    unsigned left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) load_fragments((a_place ^ (k * 32)) + m * 16 * kRowBytes, left[m]);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      unsigned right[4];
      load_fragments((b_place ^ (k * 32)) + n * 16 * kRowBytes, right);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(sums[m][2 * n], left[m], right[0], right[1], T{});
        multiply_add(sums[m][2 * n + 1], left[m], right[2], right[3], T{});
      }
    }
  }
}

// Converts 16 columns of a GEMM's results (kM x 16 rows, K columns) to the left operand of the next
// GEMM, rounded to T. The columns start at 16 k.
template <class T, int kM, int K>
__device__ inline void take_as_left(const float (&results)[kM][K / 8][4], int k,
                                    unsigned (&left)[kM][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    const auto& low = results[m][2 * k];
    const auto& high = results[m][2 * k + 1];
    left[m][0] = packed(low[0], low[1], T{});
    left[m][1] = packed(low[2], low[3], T{});
    left[m][2] = packed(high[0], high[1], T{});
    left[m][3] = packed(high[2], high[3], T{});
  }
}

// sums[m][n] += left (kM x 16 rows, 16 columns) times a 16 x N part of a tile. `place` is this
// lane's ldmatrix address from b_source_by_depth(). The part must start at a column that is a
// multiple of N, because the address is advanced by XOR.
template <class T, int kM, int N>
__device__ inline void add_step_by_depth(float (&sums)[kM][N / 8][4], const unsigned (&left)[kM][4],
                                         unsigned place) {
#pragma unroll
  for (int n = 0; n < N / 16; ++n) {
    unsigned right[4];
    load_fragments_transposed(place ^ (n * 32), right);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      multiply_add(sums[m][2 * n], left[m], right[0], right[1], T{});
      multiply_add(sums[m][2 * n + 1], left[m], right[2], right[3], T{});
    }
  }
}

// sums[m][d] += left times the first K rows of `b`, a tile of D columns. `left` has kM x 16 rows
// and K columns, in the layout of add_product_by_column()'s results, and is rounded to T.
template <class T, int D, int kM, int K>
__device__ inline void add_product_by_depth(float (&sums)[kM][D / 8][4],
                                            const float (&left)[kM][K / 8][4], const uint4* b) {
  const TilePlace of_b = b_source_by_depth(static_cast<int>(threadIdx.x) % 32);
  const unsigned b_place = place_address<D>(b, of_b.row, of_b.chunk);
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
    unsigned a[kM][4];
    take_as_left<T, kM, K>(left, k, a);
    add_step_by_depth<T, kM, D>(sums, a, b_place + k * 16 * D * 2);
  }
}

}  // namespace tpsim
