// Wrappers of PTX instructions without a C++ equivalent. All other kernel code is C++, so that the
// kernels also run with the CPU emulation of tests/emulated_gpu/ptx.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tpsim {

__device__ inline unsigned shared_address(const void* data) {
  return static_cast<unsigned>(__cvta_generic_to_shared(data));
}

// Copies 16 bytes from global to shared memory asynchronously; writes zeros if not `present`.
__device__ inline void copy_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(present ? 16 : 0)
               : "memory");
}
// As copy_async(), for 4 bytes.
__device__ inline void copy_word_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(present ? 4 : 0)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
// Waits until all but the last kLeft commit groups of this thread are complete.
template <int kLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

// Loads four 8 x 8 matrices from shared memory; the second function transposes them.
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

// 2^x; 0 for x below -126.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// Returns 0, 1, ... in the order in which blocks call it.
__device__ inline int next_number(int* next) {
  int number;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;\n"
               : "=r"(number)
               : "l"(next)
               : "memory");
  return number;
}

// A counter in global memory that another block will set to `value`. `seen` is its value at the
// last read.
struct Turn {
  const int* of;
  int value, seen;
};
__device__ inline Turn turn_now(const int* of, int value) {
  int seen;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];\n" : "=r"(seen) : "l"(of) : "memory");
  return {of, value, seen};
}
// Waits until the counter has the value. Each lane waits. The block that sets it must have a lower
// next_number(), so that it has started.
__device__ inline void wait_for_turn(Turn turn) {
  while (turn.seen != turn.value) {
    __nanosleep(32);
    turn = turn_now(turn.of, turn.value);
  }
}
// Sets a counter. A whole warp calls it. All earlier reads and writes of the warp are visible to
// blocks that have waited for the counter. The warp barrier orders the other lanes' writes before
// the first lane's release, which is cumulative (PTX memory model).
__device__ inline void end_turn(int* turn, int value) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;\n" ::"l"(turn), "r"(value) : "memory");
  }
}
// Stores N float4 with a stride of kApart float4. Bypasses L1, because other blocks read them in
// L2.
template <int kApart, int N>
__device__ inline void store_beyond_l1(float4* to, const float (&sums)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    __stcg(to + n * kApart, float4{sums[n][0], sums[n][1], sums[n][2], sums[n][3]});
  }
}
template <int kApart, int N>
__device__ inline void add_from_beyond_l1(float (&sums)[N][4], const float4* from) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float4 x = __ldcg(from + n * kApart);
    sums[n][0] += x.x;
    sums[n][1] += x.y;
    sums[n][2] += x.z;
    sums[n][3] += x.w;
  }
}
// Adds `sums` to the values in memory. No other block may add at the same time. On Hopper and newer
// GPUs the L2 cache adds, which halves the traffic and does not block the warp.
template <int kApart, int N>
__device__ inline void add_beyond_l1(float4* to, float (&sums)[N][4]) {
#if __CUDA_ARCH__ >= 900
#pragma unroll
  for (int n = 0; n < N; ++n) {
    asm volatile(
        "red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(to + n * kApart),
        "f"(sums[n][0]), "f"(sums[n][1]), "f"(sums[n][2]), "f"(sums[n][3])
        : "memory");
  }
#else
  add_from_beyond_l1<kApart>(sums, to);
  store_beyond_l1<kApart>(to, sums);
#endif
}

// Reads threadIdx.x again at each call, which saves registers for values derived from it.
__device__ inline int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;\n" : "=r"(thread));
  return thread;
}

// Global clock in nanoseconds, shared by all kernels.
__device__ inline std::uint64_t now_in_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

}  // namespace tpsim
