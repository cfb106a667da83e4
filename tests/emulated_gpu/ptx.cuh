// Host implementation of the instructions of kernels/cuda/tiles/ptx.cuh; replaces that file. Lanes
// hold elements as the PTX ISA defines ("Matrix fragments for mma.m16n8k16", "ldmatrix").
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/emulated_gpu/counts.h"
#include "tests/emulated_gpu/thread_block.h"
#include "tests/emulated_gpu/tile_product.h"

namespace tpsim {

inline unsigned shared_address(const void* data) {
  const std::ptrdiff_t offset = static_cast<const std::byte*>(data) - emulated::shared_memory();
  if (offset < 0 || offset >= std::ptrdiff_t{emulated::kSharedMemory}) {
    emulated::end_with("an address outside the block's shared memory");
  }
  return static_cast<unsigned>(offset);
}

inline void copy_async(void* to, const void* from, bool present) {
  alignas(16) static constexpr std::array<std::byte, 16> kZeros{};
  if ((reinterpret_cast<std::uintptr_t>(from) | shared_address(to)) % 16 != 0) {
    emulated::end_with("cp.async from or to no multiple of 16 bytes");
  }
  emulated::copy_later(to, present ? from : kZeros.data(), 16);
}
inline void copy_word_async(void* to, const void* from, bool present) {
  static constexpr std::uint32_t kZero = 0;
  if ((reinterpret_cast<std::uintptr_t>(from) | shared_address(to)) % 4 != 0) {
    emulated::end_with("cp.async from or to no multiple of 4 bytes");
  }
  emulated::copy_later(to, present ? from : &kZero, 4);
}
inline void commit_copies() { emulated::commit_copies(); }
template <int kLeft>
inline void wait_for_copies() {
  emulated::wait_for_copies(kLeft);
}

// Lanes 8 i .. 8 i + 7 point to the rows of matrix i of four.
inline void load_rows(unsigned from, bool transposed, unsigned (&r)[4]) {
  if (from % 16 != 0) emulated::end_with("ldmatrix from no multiple of 16 bytes");
  using Registers = std::array<std::array<std::uint16_t, 2>, 4>;
  const auto mine =
      emulated::warp_together<Registers>(from, [transposed](const auto& rows, auto& out) {
        emulated::count(&emulated::Counts::fragment_loads);
        for (std::size_t lane = 0; lane < rows.size(); ++lane) {
          for (std::size_t matrix = 0; matrix < 4; ++matrix) {
            for (std::size_t i = 0; i < 2; ++i) {
              const std::size_t slow = lane / 4, fast = lane % 4 * 2 + i;
              const std::size_t row = transposed ? fast : slow, column = transposed ? slow : fast;
              std::memcpy(&out[lane][matrix][i],
                          emulated::shared_memory() + rows[matrix * 8 + row] + column * 2, 2);
            }
          }
        }
      });
  std::memcpy(r, &mine, sizeof r);
}
inline void load_fragments(unsigned from, unsigned (&r)[4]) { load_rows(from, false, r); }
inline void load_fragments_transposed(unsigned from, unsigned (&r)[4]) { load_rows(from, true, r); }

struct MmaOperands {
  float c[4];
  std::uint16_t a[4][2];
  std::uint16_t b[2][2];
};

inline float value_of(std::uint16_t bits, __nv_bfloat16) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
inline float value_of(std::uint16_t bits, __half) {
  return __half2float(std::bit_cast<__half>(bits));
}

// Operand A is 16 x 16, B is 16 x 8, C is 16 x 8.
template <class T>
inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, T) {
  MmaOperands mine{};
  std::memcpy(mine.c, c, sizeof c);
  std::memcpy(mine.a, a, sizeof a);
  std::memcpy(mine.b[0], &b0, sizeof b0);
  std::memcpy(mine.b[1], &b1, sizeof b1);
  const auto sums =
      emulated::warp_together<std::array<float, 4>>(mine, [](const auto& lanes, auto& out) {
        emulated::count(&emulated::Counts::tile_products);
        emulated::Tile<16> left{};  // [k][row]
        emulated::Tile<8> right{};  // [k][column]
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
          const std::size_t group = lane / 4, pair = lane % 4 * 2;
          for (std::size_t i = 0; i < 2; ++i) {
            for (std::size_t r = 0; r < 4; ++r) {
              left[pair + r / 2 * 8 + i][group + r % 2 * 8] = value_of(lanes[lane].a[r][i], T{});
            }
            for (std::size_t r = 0; r < 2; ++r) {
              right[pair + r * 8 + i][group] = value_of(lanes[lane].b[r][i], T{});
            }
          }
        }
        const auto products = emulated::tile_product(left, right);  // [row][column]
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
          for (std::size_t i = 0; i < 4; ++i) {
            out[lane][i] = lanes[lane].c[i] + products[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
          }
        }
      });
  std::memcpy(c, sums.data(), sizeof c);
}

inline float exp2_fast(float x) {
  const float y = std::exp2(x);
  return y < 0x1p-126F ? 0.0F : y;
}

inline int next_number(int* next) { return (*next)++; }

struct Turn {
  const int* of;
  int value, seen;
};
inline Turn turn_now(const int* of, int value) {
  emulated::let_others_go();
  return {of, value, *of};
}
inline void wait_for_turn(Turn turn) {
  while (turn.seen != turn.value && !emulated::ignores_turns()) {
    emulated::wait_for_others();
    turn.seen = *turn.of;
  }
  emulated::let_others_go();
}
inline void end_turn(int* turn, int value) {
  __syncwarp();
  emulated::let_others_go();
  if (threadIdx.x % 32 != 0) return;
  *turn = value;
  emulated::tell_others();
}
template <int kApart, int N>
void store_beyond_l1(float4* to, const float (&sums)[N][4]) {
  for (int n = 0; n < N; ++n) to[n * kApart] = {sums[n][0], sums[n][1], sums[n][2], sums[n][3]};
}
template <int kApart, int N>
void add_from_beyond_l1(float (&sums)[N][4], const float4* from) {
  for (int n = 0; n < N; ++n) {
    const float4 x = from[n * kApart];
    const std::array<float, 4> four{x.x, x.y, x.z, x.w};
    for (std::size_t i = 0; i < 4; ++i) sums[n][i] += four[i];
  }
}
template <int kApart, int N>
void add_beyond_l1(float4* to, float (&sums)[N][4]) {
  add_from_beyond_l1<kApart>(sums, to);
  store_beyond_l1<kApart>(to, sums);
}

inline int thread_now() { return static_cast<int>(threadIdx.x); }

inline std::uint64_t now_in_ns() {
  using Nanoseconds = std::chrono::nanoseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(now).count());
}

}  // namespace tpsim
