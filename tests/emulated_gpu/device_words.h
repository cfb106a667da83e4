// CUDA C++ keywords for a host compiler. Included before every source that nvcc would compile
// (translate.cmake).
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <thread>

#include "tests/emulated_gpu/launch.h"
#include "tests/emulated_gpu/thread_block.h"

namespace tpsim::emulated {

inline void demand_all_lanes(unsigned mask) {
  if (mask != 0xffffffffU) end_with("only whole warps are emulated");
}

// Checks a kernel's __launch_bounds__: registers are allocated for at most this many threads.
inline void demand_threads(unsigned most, unsigned = 0) {
  if (blockDim.x * blockDim.y * blockDim.z > most) end_with("more threads than __launch_bounds__");
}

}  // namespace tpsim::emulated

inline void __syncthreads() { tpsim::emulated::meet_block(); }
inline int __syncthreads_or(int mine) { return tpsim::emulated::any_of_block(mine != 0) ? 1 : 0; }

inline void __syncwarp(unsigned mask = 0xffffffffU) {
  tpsim::emulated::demand_all_lanes(mask);
  tpsim::emulated::warp_together<char>('\0', [](const auto&, auto&) {});
}

template <class T>
T __shfl_xor_sync(unsigned mask, T mine, int with) {
  tpsim::emulated::demand_all_lanes(mask);
  return tpsim::emulated::warp_together<T>(mine, [with](const auto& in, auto& out) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i ^ static_cast<std::size_t>(with)];
  });
}

template <class T>
T __shfl_sync(unsigned mask, T mine, int lane) {
  struct Asked {
    T value;
    int lane;
  };
  tpsim::emulated::demand_all_lanes(mask);
  return tpsim::emulated::warp_together<T>(Asked{mine, lane}, [](const auto& in, auto& out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i] = in[static_cast<std::size_t>(in[i].lane) % in.size()].value;
    }
  });
}

inline unsigned __ballot_sync(unsigned mask, bool mine) {
  tpsim::emulated::demand_all_lanes(mask);
  return tpsim::emulated::warp_together<unsigned>(mine, [](const auto& in, auto& out) {
    unsigned votes = 0;
    for (std::size_t i = 0; i < in.size(); ++i) votes |= (in[i] ? 1U : 0U) << i;
    out.fill(votes);
  });
}

inline bool __any_sync(unsigned mask, bool mine) { return __ballot_sync(mask, mine) != 0; }

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __ffs(unsigned bits) { return bits == 0 ? 0 : std::countr_zero(bits) + 1; }

template <class T>
T __ldg(const T* from) {
  return *from;
}

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }

// Only one thread runs at a time.
inline int atomicMax(int* at, int x) {
  const int before = *at;
  *at = before > x ? before : x;
  return before;
}

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline double cospi(double x) { return std::cos(x * 3.14159265358979323846); }

inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }

inline void __nanosleep(unsigned nanoseconds) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
