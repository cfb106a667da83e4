// Host implementation of the instructions of kernels/cuda/tiles/ptx_hopper.cuh; replaces that file.
// Matrices are decoded from their descriptors, bit by bit (PTX ISA, "Matrix descriptor format",
// "Canonical layouts" of wgmma). GEMMs run when they are waited for, not before.
#pragma once

#include "kernels/cuda/tiles/ptx.cuh"

namespace tpsim {

inline void show_to_products() { emulated::show_copies(); }
inline void begin_products() { emulated::fence_work(); }
inline void commit_products() { emulated::commit_work(); }
template <int kLeft>
inline void wait_for_products() {
  emulated::wait_for_work(kLeft);
}
template <int N>
inline void take_sums(float (&)[N][4]) {}

// The fields of a descriptor; offsets in bytes.
struct EmulatedMatrix {
  unsigned start, leading, stride;
};
inline EmulatedMatrix decoded(std::uint64_t bits) {
  const auto field = [bits](unsigned first, unsigned count) {
    return static_cast<unsigned>(bits >> first & ((std::uint64_t{1} << count) - 1));
  };
  if (field(62, 2) != 1) emulated::end_with("only swizzling over 128 bytes is emulated");
  if (field(49, 3) != 0) emulated::end_with("only matrices on 1024 bytes are emulated");
  if ((field(14, 2) | field(30, 2) | field(46, 3) | field(52, 10)) != 0) {
    emulated::end_with("reserved bits of a matrix descriptor are not zero");
  }
  return {field(0, 14) << 4U, field(16, 14) << 4U, field(32, 14) << 4U};
}

// Returns the 16-bit element at an address before swizzling. Swizzling permutes eight 16-byte
// chunks by the number of their 128-byte row.
inline std::uint16_t swizzled_element(unsigned address) {
  const unsigned place = address ^ (address >> 7U & 7U) << 4U;
  if (place + 2 > emulated::kSharedMemory) {
    emulated::end_with("a matrix descriptor leads outside the block's shared memory");
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, emulated::shared_memory() + place, sizeof bits);
  return bits;
}
// Element of a K-major matrix: rows of 128 bytes, groups of eight rows at the stride.
inline std::uint16_t element_along_k(const EmulatedMatrix& m, unsigned row, unsigned k) {
  return swizzled_element(m.start + row / 8 * m.stride + row % 8 * 128 + k * 2);
}
// Element of an MN-major matrix: 64 elements of N in 128 bytes, the next 64 at the leading offset.
// Eight k have 128 bytes each, the next eight are at the stride.
inline std::uint16_t element_along_n(const EmulatedMatrix& m, unsigned k, unsigned n) {
  return swizzled_element(m.start + n / 64 * m.leading + n % 64 * 2 + k / 8 * m.stride +
                          k % 8 * 128);
}

struct WarpgroupOperands {
  float (*c)[4];
  const unsigned* a;  // null: in shared memory, by descriptor_a
  std::uint64_t descriptor_a, descriptor_b;
  unsigned warp;  // number in the warpgroup
  bool adds;
  bool by_columns;  // a (in shared memory) and b are MN-major
};

// Computes the 16 rows of one warp; b: [k][column].
template <int N, class T>
inline void multiply_rows_of_warp(const std::array<WarpgroupOperands, emulated::kLanes>& lanes) {
  emulated::count(&emulated::Counts::warpgroup_products);
  const bool in_registers = lanes[0].a != nullptr, by_columns = lanes[0].by_columns;
  const EmulatedMatrix right = decoded(lanes[0].descriptor_b);
  std::array<std::array<float, 16>, 16> a{};
  std::array<std::array<float, N>, 16> b{};
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned n = 0; n < N; ++n) {
      b[k][n] =
          value_of(by_columns ? element_along_n(right, k, n) : element_along_k(right, n, k), T{});
    }
    for (unsigned row = 0; row < 16; ++row) {
      std::uint16_t bits = 0;
      if (in_registers) {
        const unsigned* const held = lanes[row % 8 * 4 + k % 8 / 2].a;
        bits = static_cast<std::uint16_t>(held[row / 8 + k / 8 * 2] >> k % 2 * 16);
      } else {
        const EmulatedMatrix left = decoded(lanes[0].descriptor_a);
        const unsigned of_group = lanes[0].warp * 16 + row;
        bits = by_columns ? element_along_n(left, k, of_group) : element_along_k(left, of_group, k);
      }
      a[row][k] = value_of(bits, T{});
    }
  }
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned n = 0; n < N; ++n) {
      const WarpgroupOperands& lane = lanes[row % 8 * 4 + n % 8 / 2];
      float& c = lane.c[n / 8][row / 8 * 2 + n % 2];
      float sum = 0;
      for (unsigned k = 0; k < 16; ++k) sum += a[row][k] * b[k][n];
      c = (lane.adds ? c : 0.0F) + sum;
    }
  }
}

template <int N, class T>
inline void multiply_later(const WarpgroupOperands& mine) {
  emulated::work_later([mine] {
    emulated::warp_together<char>(mine, [](const auto& lanes, auto&) {
      for (const WarpgroupOperands& lane : lanes) {
        if (lane.descriptor_a != lanes[0].descriptor_a ||
            lane.descriptor_b != lanes[0].descriptor_b || lane.adds != lanes[0].adds) {
          emulated::end_with("lanes of a warp give different descriptors");
        }
      }
      multiply_rows_of_warp<N, T>(lanes);
    });
  });
}

template <int N, class T>
inline void multiply_rows(float (&c)[N][4], std::uint64_t a, std::uint64_t b, bool adds, T) {
  multiply_later<N * 8, T>({c, nullptr, a, b, threadIdx.x / 32 % 4, adds, false});
}
template <int N, class T>
inline void multiply_columns(float (&c)[N][4], std::uint64_t a, std::uint64_t b, bool adds, T) {
  multiply_later<N * 8, T>({c, nullptr, a, b, threadIdx.x / 32 % 4, adds, true});
}
template <int N, class T>
inline void multiply_depth(float (&c)[N][4], const unsigned (&a)[4], std::uint64_t b, T) {
  multiply_later<N * 8, T>({c, a, 0, b, threadIdx.x / 32 % 4, true, true});
}

}  // namespace tpsim
