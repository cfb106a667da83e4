// Quantization of GEMM operands in tiles of 128 x 128 elements. A tile is read once and stays in
// registers while its scales are computed. It is written as stored, or transposed through shared
// memory, or both, 16 bytes at a time.
#include <cuda_fp8.h>

#include <algorithm>

#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/elementwise/elementwise.cuh"
#include "kernels/cuda/linear/matmul_8_bits.h"

namespace tpsim {
namespace {

constexpr int kThreads = 256;
constexpr int kSide = 128;                 // rows and columns of a tile
constexpr int kEach = 16;                  // elements of a row per thread
constexpr int kAcross = kSide / kEach;     // threads along a row
constexpr int kRowsEach = 4;               // rows per thread
constexpr int kPacks = kEach / kPack;      // packs per thread and row
constexpr int kWarps = kThreads / kWarp;   // a warp holds 16 rows
constexpr int kVector = 32;                // elements that share a scale of kVector32
constexpr int kVectors = kSide / kVector;  // per row of a tile
constexpr int kWarpsOfVector = kWarps / kVectors;
constexpr std::int64_t kScaleTile = 512;  // bytes of 128 rows x 4 scales

// The source matrix as stored, with `stride` elements between rows.
template <class T>
struct Lying {
  const T* data;
  std::int64_t rows, cols, stride;
  bool packed;  // every row starts at a multiple of 16 bytes

  __device__ Raw<T, kPack> pack(std::int64_t row, std::int64_t col) const {
    Raw<T, kPack> raw;
    if (packed && row < rows && col + kPack <= cols) {
      raw.read_constant(data + row * stride + col);
      return raw;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      raw.elements[i] =
          row < rows && col + i < cols ? data[row * stride + col + i] : narrowed<T>(0.0F);
    }
    return raw;
  }
};

// This thread's position in a tile. `across` counts groups of kEach columns, `down` groups of
// kRowsEach rows.
struct Place {
  int across = static_cast<int>(threadIdx.x) % kAcross,
      down = static_cast<int>(threadIdx.x) / kAcross;
  int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
};

// The elements of a tile that this thread holds.
template <class T>
struct Held {
  Raw<T, kPack> packs[kRowsEach][kPacks];

  __device__ void read(const Lying<T>& x, std::int64_t row, std::int64_t col) {
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
#pragma unroll
      for (int j = 0; j < kPacks; ++j) packs[i][j] = x.pack(row + i, col + j * kPack);
    }
  }
  __device__ float at(int i, int j) const { return packs[i][j / kPack][j % kPack]; }
  // Returns the bits of the absolute value, which as integers have the same order. NaN is largest.
  __device__ int magnitude(int i, int j) const { return __float_as_int(fabsf(at(i, j))); }
  __device__ int greatest_of_row(int i) const {
    int greatest = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) greatest = max(greatest, magnitude(i, j));
    return greatest;
  }
};

struct GreatestOf {
  __device__ int operator()(int a, int b) const { return max(a, b); }
};

template <class T>
__device__ int greatest_of_tile(const Held<T>& held) {
  int greatest[1] = {0};
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) greatest[0] = max(greatest[0], held.greatest_of_row(i));
  block_reduce(greatest, GreatestOf{});
  return greatest[0];
}

// Raises a maximum in global memory. The order of blocks does not matter, since the maximum of
// integers is exact.
__device__ void raise(int* greatest, int by) {
  if (threadIdx.x == 0 && by > *static_cast<volatile int*>(greatest)) atomicMax(greatest, by);
}

__device__ float unit_for(int greatest, float greatest_of_format) {
  if (greatest == 0) return 1.0F;
  const float unit = __int_as_float(greatest) / greatest_of_format;
  return unit < kLeastUnit ? kLeastUnit : unit;  // NaN propagates
}

// Returns the smallest power of two that is not below the scale. Infinities and NaN propagate.
__device__ float block_unit(int greatest, float greatest_of_format) {
  constexpr int kMantissa = 0x7fffff, kExponent = 0x7f800000;
  const int bits = __float_as_int(unit_for(greatest, greatest_of_format));
  return bits >= kExponent ? __int_as_float(bits) : __int_as_float((bits + kMantissa) & kExponent);
}
__device__ std::uint8_t exponent_of(float power_of_two) {
  return static_cast<std::uint8_t>(__float_as_int(power_of_two) >> 23);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    greatest_kernel(const Lying<T> x, std::int64_t tiles_across, int* greatest) {
  const Place at;
  Held<T> held;
  held.read(x, blockIdx.x / tiles_across * kSide + at.down * kRowsEach,
            blockIdx.x % tiles_across * kSide + at.across * kEach);
  raise(greatest, greatest_of_tile(held));
}

template <__nv_fp8_interpretation_t kFormat>
constexpr float kMaxFinite = kFormat == __NV_E4M3 ? 448.0F : 57344.0F;

// Multiplies two elements by inverse scales and quantizes them. Infinities become NaN, because the
// conversion would saturate them.
template <__nv_fp8_interpretation_t kFormat>
__device__ unsigned rounded_pair(float x, float y, float of_x, float of_y) {
  const float2 both{fmaf(x, 0.0F, x) * of_x, fmaf(y, 0.0F, y) * of_y};
  return __nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE, kFormat);
}

// Position of a tile's results in the destination matrix.
struct Tile {
  std::int64_t row, col;  // first element in the result
};

__device__ std::int64_t tiles_in(std::int64_t n) { return (n + kSide - 1) / kSide; }

// Returns the address of a kVector32 scale, for a row of the tile and one of its four vectors.
__device__ std::uint8_t* vector_scale(const NarrowMatrix& to, const Tile& tile, int row,
                                      int vector) {
  const std::int64_t tiles = tile.row / kSide * tiles_in(to.depth) + tile.col / kSide;
  return static_cast<std::uint8_t*>(to.scales) + tiles * kScaleTile + row % 32 * 16 + row / 32 * 4 +
         vector;
}

__device__ void set_vector_scale(const NarrowMatrix& to, const Tile& tile, int row, int vector,
                                 float unit) {
  const bool is_there = tile.row + row < to.rows && tile.col + vector * kVector < to.depth;
  *vector_scale(to, tile, row, vector) = is_there ? exponent_of(unit) : std::uint8_t{0};
}

// Writes the kTile128 scale of a tile. The block of the last tile in a row also pads the row of
// scales.
__device__ void set_tile_scale(const NarrowMatrix& to, const Tile& tile, float unit) {
  if (threadIdx.x > 0) return;
  const std::int64_t across = tiles_in(to.depth), stride = (across + 3) / 4 * 4;
  float* const row = static_cast<float*>(to.scales) + tile.row / kSide * stride;
  row[tile.col / kSide] = unit;
  if (tile.col / kSide == across - 1) {
    for (std::int64_t i = across; i < stride; ++i) row[i] = 0;
  }
}

// Writes the tile row by row, not transposed. `unit` is the scale of the tile. With per-vector
// scaling it is not used, and the scale of each vector is computed here.
template <__nv_fp8_interpretation_t kFormat, class T>
__device__ void write_rows(const Held<T>& held, const NarrowMatrix& to, const Tile& tile,
                           ScalesOf scales, float unit) {
  const Place at;
  const std::int64_t col = tile.col + at.across * kEach;
  if (scales == ScalesOf::kTile128) set_tile_scale(to, tile, unit);
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) {
    const int in_tile = at.down * kRowsEach + i;
    const std::int64_t row = tile.row + in_tile;
    if (scales == ScalesOf::kVector128 || scales == ScalesOf::kVector32) {
      int greatest = held.greatest_of_row(i);
      greatest = max(greatest, __shfl_xor_sync(0xffffffffU, greatest, 1));
      if (scales == ScalesOf::kVector128) {
        greatest = max(greatest, __shfl_xor_sync(0xffffffffU, greatest, 2));
        greatest = max(greatest, __shfl_xor_sync(0xffffffffU, greatest, 4));
      }
      unit = block_unit(greatest, kMaxFinite<kFormat>);
      if (scales == ScalesOf::kVector32) {
        if (at.across % 2 == 0) set_vector_scale(to, tile, in_tile, at.across / 2, unit);
      } else if (at.across == 0 && row < to.rows) {
        static_cast<float*>(to.scales)[tile.col / kSide * to.rows + row] = unit;
      }
    }
    const float inverse = 1.0F / unit;
    unsigned words[kEach / 4];
#pragma unroll
    for (int j = 0; j < kEach; j += 4) {
      words[j / 4] = rounded_pair<kFormat>(held.at(i, j), held.at(i, j + 1), inverse, inverse) |
                     rounded_pair<kFormat>(held.at(i, j + 2), held.at(i, j + 3), inverse, inverse)
                         << 16U;
    }
    if (row < to.rows && col < to.depth) {
      *reinterpret_cast<uint4*>(to.data + row * to.depth + col) =
          uint4{words[0], words[1], words[2], words[3]};
    }
  }
}

// Computes the inverse scales of a tile's columns: one per 32 rows (kVector32) or one per column
// (kVector128). Also writes the scales of the transposed matrix. `of_warp` is working memory.
template <__nv_fp8_interpretation_t kFormat, class T>
__device__ void find_column_units(const Held<T>& held, const NarrowMatrix& to, const Tile& tile,
                                  ScalesOf scales, int (*of_warp)[kSide],
                                  float (*inverse_units)[kSide]) {
  const Place at;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    int greatest = 0;
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) greatest = max(greatest, held.magnitude(i, j));
    greatest = max(greatest, __shfl_xor_sync(0xffffffffU, greatest, kAcross));
    greatest = max(greatest, __shfl_xor_sync(0xffffffffU, greatest, 2 * kAcross));
    if (at.lane < kAcross) of_warp[at.warp][at.across * kEach + j] = greatest;
  }
  __syncthreads();
  const bool by_32 = scales == ScalesOf::kVector32;
  const int vectors = by_32 ? kVectors : 1, warps = by_32 ? kWarpsOfVector : kWarps;
  for (int i = static_cast<int>(threadIdx.x); i < vectors * kSide; i += kThreads) {
    const int vector = i / kSide, col = i % kSide;
    int greatest = 0;
    for (int w = 0; w < warps; ++w) greatest = max(greatest, of_warp[vector * warps + w][col]);
    const float unit = block_unit(greatest, kMaxFinite<kFormat>);
    inverse_units[vector][col] = 1.0F / unit;
    if (by_32) {
      set_vector_scale(to, tile, col, vector, unit);
    } else if (tile.row + col < to.rows) {
      static_cast<float*>(to.scales)[tile.col / kSide * to.rows + tile.row + col] = unit;
    }
  }
  __syncthreads();
}

// Writes the tile transposed, through shared memory. Four bytes of a column form a word. The 32
// words of a column are permuted, so that neither writes (one word of each column) nor reads (four
// words of one column) have bank conflicts.
template <__nv_fp8_interpretation_t kFormat, class T>
__device__ void write_columns(const Held<T>& held, const NarrowMatrix& to, const Tile& tile,
                              ScalesOf scales, float unit) {
  __shared__ uint4 turned[kSide * kSide / 16];
  __shared__ int of_warp[kWarps][kSide];
  __shared__ float inverse_units[kVectors][kSide];
  const Place at;
  const bool by_column = scales == ScalesOf::kVector128 || scales == ScalesOf::kVector32;
  if (scales == ScalesOf::kTile128) set_tile_scale(to, tile, unit);
  if (by_column) find_column_units<kFormat>(held, to, tile, scales, of_warp, inverse_units);
  const int vector = scales == ScalesOf::kVector32 ? at.warp / kWarpsOfVector : 0;
  const float common = 1.0F / unit;
  auto* const words = reinterpret_cast<unsigned*>(turned);
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int col = at.across * kEach + j;
    const float inverse = by_column ? inverse_units[vector][col] : common;
    words[col * (kSide / 4) + (at.down ^ (4 * at.across))] =
        rounded_pair<kFormat>(held.at(0, j), held.at(1, j), inverse, inverse) |
        rounded_pair<kFormat>(held.at(2, j), held.at(3, j), inverse, inverse) << 16U;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide / 16; i += kThreads) {
    const int col = i / kAcross, part = i % kAcross;
    const std::int64_t row = tile.row + col, depth = tile.col + part * 16;
    if (row < to.rows && depth < to.depth) {
      *reinterpret_cast<uint4*>(to.data + row * to.depth + depth) =
          turned[col * kAcross + (part ^ (col / kEach))];
    }
  }
}

struct Rounding {
  NarrowMatrix as_stored, turned;
  ScalesOf scales;
  TensorScale of_tensor;
};

template <__nv_fp8_interpretation_t kFormat, class T>
__global__ void __launch_bounds__(kThreads, 2)
    narrow_kernel(const Lying<T> x, std::int64_t tiles_across, const Rounding to) {
  const Place at;
  const std::int64_t row = blockIdx.x / tiles_across * kSide;
  const std::int64_t col = blockIdx.x % tiles_across * kSide;
  Held<T> held;
  held.read(x, row + at.down * kRowsEach, col + at.across * kEach);
  float unit = 1.0F;
  if (to.scales == ScalesOf::kTile128) {
    unit = block_unit(greatest_of_tile(held), kMaxFinite<kFormat>);
  } else if (to.scales == ScalesOf::kTensor) {
    const TensorScale& scale = to.of_tensor;
    if (scale.own_amax != nullptr) {
      unit = unit_for(*scale.own_amax, kMaxFinite<kFormat>);
      if (blockIdx.x == 0 && threadIdx.x == 0) *scale.unit = unit;
    } else {
      unit = *scale.unit;
    }
    if (scale.greatest != nullptr) {
      raise(reinterpret_cast<int*>(scale.greatest), greatest_of_tile(held));
    }
  }
  if (to.as_stored.data != nullptr) {
    write_rows<kFormat>(held, to.as_stored, Tile{row, col}, to.scales, unit);
  }
  if (to.turned.data != nullptr) {
    write_columns<kFormat>(held, to.turned, Tile{col, row}, to.scales, unit);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_sums_kernel(const float* sums, std::int64_t stride, float beta, T* c, std::int64_t rows,
                    std::int64_t cols, std::int64_t c_stride) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (std::int64_t col = threadIdx.x; col < cols; col += kThreads) {
      T& to = c[row * c_stride + col];
      const float before = beta == 0 ? 0.0F : beta * widened(to);
      to = narrowed<T>(sums[row * stride + col] + before);
    }
  }
}

// Returns the number of tiles of kSide along one dimension. The tiles cover the source matrix and
// the padding of both quantized results (as stored, transposed).
std::int64_t tiles_of(std::int64_t in_matrix, std::int64_t as_stored, std::int64_t turned) {
  return (std::max({in_matrix, as_stored, turned}) + kSide - 1) / kSide;
}

template <class T>
void narrow_from(const Narrowing& narrowing, const CudaState& state) {
  const Matrix& m = narrowing.from;
  const auto* const data = static_cast<const T*>(m.tensor.raw()) + m.offset;
  const bool packed = m.row_stride % kPack == 0 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  const Lying<T> x{data, m.rows, m.cols, m.row_stride, packed};
  const NarrowMatrix &lying = narrowing.as_stored, &turned = narrowing.turned;
  const std::int64_t down = tiles_of(m.rows, lying.rows, turned.depth);
  const std::int64_t across = tiles_of(m.cols, lying.depth, turned.rows);
  const auto blocks = static_cast<unsigned>(down * across);
  const Rounding to{lying, turned, narrowing.scales, narrowing.of_tensor};
  if (narrowing.of_tensor.own_amax != nullptr) {
    greatest_kernel<T>
        <<<blocks, kThreads, 0, state.stream>>>(x, across, narrowing.of_tensor.own_amax);
  }
  if (narrowing.is_e5m2) {
    narrow_kernel<__NV_E5M2, T><<<blocks, kThreads, 0, state.stream>>>(x, across, to);
  } else {
    narrow_kernel<__NV_E4M3, T><<<blocks, kThreads, 0, state.stream>>>(x, across, to);
  }
}

}  // namespace

std::int64_t scale_bytes(ScalesOf scales, std::int64_t rows, std::int64_t depth) {
  const std::int64_t tiles_down = (rows + kSide - 1) / kSide;
  const std::int64_t tiles_across = (depth + kSide - 1) / kSide;
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  switch (scales) {
    case ScalesOf::kTensor: return kFloat;
    case ScalesOf::kVector128: return kFloat * rows * tiles_across;
    case ScalesOf::kTile128: return kFloat * tiles_down * multiple_of(4, tiles_across);
    case ScalesOf::kVector32: return kScaleTile * tiles_down * tiles_across;
  }
  return 0;
}

void narrow(const Narrowing& narrowing, const CudaState& state) {
  with_type(narrowing.from.tensor.dtype(),
            [&](auto type) { narrow_from<typename decltype(type)::type>(narrowing, state); });
}

void add_sums(const float* sums, std::int64_t stride, float beta, const Matrix& c,
              const CudaState& state) {
  with_type(c.tensor.dtype(), [&]<class T>(Type<T>) {
    add_sums_kernel<T><<<blocks_for(c.rows, state.limits), kThreads, 0, state.stream>>>(
        sums, stride, beta, static_cast<T*>(c.tensor.raw()) + c.offset, c.rows, c.cols,
        c.row_stride);
  });
}

}  // namespace tpsim
