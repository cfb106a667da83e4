// Products of tiles in shared memory on tensor cores: bf16 or fp16 factors, fp32 sums.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/fragments.h"

namespace tpsim {

__device__ inline unsigned shared_address(const void* data) {
  return static_cast<unsigned>(__cvta_generic_to_shared(data));
}

// 16 bytes from global to shared memory, in the background; zeros when not `present`.
__device__ inline void copy_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(present ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
// Until all but the last kLeft commits have arrived; for this thread's copies.
template <int kLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

// Both from shared addresses.
__device__ inline void load_fragments(unsigned from, unsigned (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ inline void load_fragments_transposed(unsigned from, unsigned (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

// c += a b
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                    __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                    __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two neighbouring elements in one register, the first in the lower half.
__device__ inline unsigned packed(float first, float second, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ inline unsigned packed(float first, float second, __half) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// The address of a lane's place in a tile whose rows have D columns. Further on along the row by
// kStep chunks, an even number, is `^ kStep * 16` (see swizzled); down by a multiple of 8 rows is
// an addition. The tile begins at a multiple of its row's size.
template <int D>
__device__ inline unsigned place_address(const uint4* tile, int row, int chunk) {
  return shared_address(tile + swizzled(row, chunk, D / kChunk));
}

// sums[m][n] += the warp's kM x 16 rows of `a`, from row `a_row` on, times the transpose of the
// first N rows of `b`; both tiles have D columns.
template <class T, int D, int kM, int N>
__device__ inline void add_product_by_column(float (&sums)[kM][N / 8][4], const uint4* a, int a_row,
                                             const uint4* b) {
  constexpr unsigned kRowBytes = D * 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const TilePlace of_a = a_source(lane), of_b = b_source_by_column(lane);
  const unsigned a_place = place_address<D>(a, a_row + of_a.row, of_a.chunk);
  const unsigned b_place = place_address<D>(b, of_b.row, of_b.chunk);
#pragma unroll 4
  for (int k = 0; k < D / 16; ++k) {
    unsigned left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      load_fragments((a_place ^ (k * 32)) + m * 16 * kRowBytes, left[m]);
    }
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

// sums[m][d] += left (kM x 16 rows, K columns, as add_product_by_column leaves its results, rounded
// to T) times the first K rows of `b`, a tile of D columns.
template <class T, int D, int kM, int K>
__device__ inline void add_product_by_depth(float (&sums)[kM][D / 8][4],
                                            const float (&left)[kM][K / 8][4], const uint4* b) {
  constexpr unsigned kRowBytes = D * 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const TilePlace of_b = b_source_by_depth(lane);
  const unsigned b_place = place_address<D>(b, of_b.row, of_b.chunk);
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
    unsigned a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      const auto& low = left[m][2 * k];
      const auto& high = left[m][2 * k + 1];
      a[m][0] = packed(low[0], low[1], T{});
      a[m][1] = packed(low[2], low[3], T{});
      a[m][2] = packed(high[0], high[1], T{});
      a[m][3] = packed(high[2], high[3], T{});
    }
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      unsigned right[4];
      load_fragments_transposed((b_place ^ (d * 32)) + k * 16 * kRowBytes, right);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(sums[m][2 * d], a[m], right[0], right[1], T{});
        multiply_add(sums[m][2 * d + 1], a[m], right[2], right[3], T{});
      }
    }
  }
}

}  // namespace tpsim
