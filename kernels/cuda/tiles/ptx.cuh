// The instructions that C++ has no words for. All other code of the kernels is C++, so that the
// kernels also run where these few have another meaning (tests/emulated_gpu/ptx.cuh).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

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
// The same of 4 bytes.
__device__ inline void copy_word_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(present ? 4 : 0)
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

// 2^x. Below -126 the result is zero.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// Numbers that blocks draw in the order in which they begin: 0, 1, ...
__device__ inline int next_number(int* next) {
  int number;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;\n"
               : "=r"(number)
               : "l"(next)
               : "memory");
  return number;
}

// A turn that another block ends: `of` becomes `value`. `seen`: what it was.
struct Turn {
  const int* of;
  int value, seen;
};
__device__ inline Turn turn_now(const int* of, int value) {
  int seen;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];\n" : "=r"(seen) : "l"(of) : "memory");
  return {of, value, seen};
}
// By every lane for itself. Who ends the turn must have drawn an earlier number.
__device__ inline void wait_for_turn(Turn turn) {
  while (turn.seen != turn.value) {
    __nanosleep(32);
    turn = turn_now(turn.of, turn.value);
  }
}
// By a whole warp: what its lanes have read and written before is done for those that wait. The
// barrier orders the other lanes' writes before the first lane's release, which is cumulative
// (PTX's memory model): they need no fence of their own.
__device__ inline void end_turn(int* turn, int value) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;\n" ::"l"(turn), "r"(value) : "memory");
  }
}
// Sums that blocks share lie in the L2 cache, not in a multiprocessor's: N pieces of four, kApart
// of them from one to the next.
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
// The sums there become what they were and `sums`; nobody else adds meanwhile. From Hopper on the
// cache adds by itself: half the traffic, and nobody waits for it.
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

// threadIdx.x, read anew each time: what is computed from it needs no registers in between.
__device__ inline int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;\n" : "=r"(thread));
  return thread;
}

// Nanoseconds of a clock that all kernels share.
__device__ inline std::uint64_t now_in_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

}  // namespace tpsim
