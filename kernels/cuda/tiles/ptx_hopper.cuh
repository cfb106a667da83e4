// Wrappers of the warpgroup instructions of Hopper (sm_90a): wgmma of bf16 or fp16 with fp32 sums.
// The 128 threads of a warpgroup compute 64 rows together. Each of the four warps has 16 rows, in
// the lane layout of mma.m16n8k16. CPU emulation: tests/emulated_gpu/ptx_hopper.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tpsim {

// Makes this thread's writes and copies to shared memory visible to later wgmma instructions.
__device__ inline void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
// Must precede the first wgmma of a group. Registers of operands must not change until the wait.
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
// Waits until all but the last kLeft commit groups are complete.
template <int kLeft>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kLeft) : "memory");
}
// Call after wait_for_products(): prevents the compiler from reading the sums before the wait.
template <int N>
__device__ inline void take_sums(float (&sums)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(sums[n][i])::"memory");
  }
}

#define TPSIM_SUMS_4(c, n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define TPSIM_SUMS_32(c, n)                                                                   \
  TPSIM_SUMS_4(c, n), TPSIM_SUMS_4(c, n + 1), TPSIM_SUMS_4(c, n + 2), TPSIM_SUMS_4(c, n + 3), \
      TPSIM_SUMS_4(c, n + 4), TPSIM_SUMS_4(c, n + 5), TPSIM_SUMS_4(c, n + 6),                 \
      TPSIM_SUMS_4(c, n + 7)
#define TPSIM_PLACES_32                                                                        \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define TPSIM_PLACES_64                                                                       \
  TPSIM_PLACES_32                                                                             \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53," \
  "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

// One wgmma with K = 16: c (64 x 128 or 64 x 64) += a b if `adds`, else c = a b. `a` and `b` are
// descriptors of tiles in shared memory, both K-major.
#define TPSIM_MULTIPLY_ROWS(T, name)                                                       \
  __device__ inline void multiply_rows(float(&c)[16][4], std::uint64_t a, std::uint64_t b, \
                                       bool adds, T) {                                     \
    asm volatile(                                                                          \
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"                                 \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." name "." name " {" TPSIM_PLACES_64  \
        "}, %64, %65, adds, 1, 1, 0, 0;\n}\n"                                              \
        : TPSIM_SUMS_32(c, 0), TPSIM_SUMS_32(c, 8)                                         \
        : "l"(a), "l"(b), "r"(adds ? 1 : 0));                                              \
  }
#define TPSIM_MULTIPLY_64(multiply, majors, T, name)                                            \
  __device__ inline void multiply(float(&c)[8][4], std::uint64_t a, std::uint64_t b, bool adds, \
                                  T) {                                                          \
    asm volatile(                                                                               \
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"                                      \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name " {" TPSIM_PLACES_32        \
        "}, %32, %33, adds, 1, 1, " majors ";\n}\n"                                             \
        : TPSIM_SUMS_32(c, 0)                                                                   \
        : "l"(a), "l"(b), "r"(adds ? 1 : 0));                                                   \
  }
#define TPSIM_MULTIPLY_64_ROWS(T, name) TPSIM_MULTIPLY_64(multiply_rows, "0, 0", T, name)
// The same for a 64 x 64 result, with both tiles MN-major.
#define TPSIM_MULTIPLY_COLUMNS(T, name) TPSIM_MULTIPLY_64(multiply_columns, "1, 1", T, name)
// c (64 x 128 or 64 x 64) += a b with K = 16. `a` is in registers, `b` describes an MN-major tile.
#define TPSIM_MULTIPLY_DEPTH(T, name)                                                              \
  __device__ inline void multiply_depth(float(&c)[16][4], const unsigned(&a)[4], std::uint64_t b,  \
                                        T) {                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." name "." name " {" TPSIM_PLACES_64 \
                 "}, {%64,%65,%66,%67}, %68, 1, 1, 1, 1;\n"                                        \
                 : TPSIM_SUMS_32(c, 0), TPSIM_SUMS_32(c, 8)                                        \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                            \
  }                                                                                                \
  __device__ inline void multiply_depth(float(&c)[8][4], const unsigned(&a)[4], std::uint64_t b,   \
                                        T) {                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name " {" TPSIM_PLACES_32  \
                 "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;\n"                                        \
                 : TPSIM_SUMS_32(c, 0)                                                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                            \
  }

TPSIM_MULTIPLY_ROWS(__nv_bfloat16, "bf16")
TPSIM_MULTIPLY_ROWS(__half, "f16")
TPSIM_MULTIPLY_64_ROWS(__nv_bfloat16, "bf16")
TPSIM_MULTIPLY_64_ROWS(__half, "f16")
TPSIM_MULTIPLY_COLUMNS(__nv_bfloat16, "bf16")
TPSIM_MULTIPLY_COLUMNS(__half, "f16")
TPSIM_MULTIPLY_DEPTH(__nv_bfloat16, "bf16")
TPSIM_MULTIPLY_DEPTH(__half, "f16")

#undef TPSIM_MULTIPLY_ROWS
#undef TPSIM_MULTIPLY_64
#undef TPSIM_MULTIPLY_64_ROWS
#undef TPSIM_MULTIPLY_COLUMNS
#undef TPSIM_MULTIPLY_DEPTH
#undef TPSIM_PLACES_64
#undef TPSIM_PLACES_32
#undef TPSIM_SUMS_32
#undef TPSIM_SUMS_4

}  // namespace tpsim
