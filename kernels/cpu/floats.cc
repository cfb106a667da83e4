#include "kernels/cpu/floats.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/half_floats.h"

namespace tpsim {
namespace {

void load_bfloat16(const std::uint16_t* from, std::int64_t count, float* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
  }
}

// Rounds to nearest even: adds just under half of the last kept bit, or half if that bit is set,
// and truncates. The addition could turn a NaN into infinity, so a NaN keeps its sign and becomes
// quiet.
void store_bfloat16(const float* from, std::int64_t count, std::uint16_t* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    to[i] = static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40U : rounded);
  }
}

// Converts eight elements at a time with intrinsics, because GCC 12 converts half floats one by
// one. The remainder goes through a buffer.
constexpr std::int64_t kEight = 8;

#ifdef __F16C__
void load_eight(const std::uint16_t* from, float* to) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm256_storeu_ps(to, _mm256_cvtph_ps(half));
}

void store_eight(const float* from, std::uint16_t* to) {
  const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
}
#else  // another processor
void load_eight(const std::uint16_t* from, float* to) {
  for (std::int64_t i = 0; i < kEight; ++i) to[i] = from_float16(from[i]);
}

void store_eight(const float* from, std::uint16_t* to) {
  for (std::int64_t i = 0; i < kEight; ++i) to[i] = to_float16(from[i]);
}
#endif

void load_float16(const std::uint16_t* from, std::int64_t count, float* to) {
  const std::int64_t whole = count / kEight * kEight;
  for (std::int64_t i = 0; i < whole; i += kEight) load_eight(from + i, to + i);
  std::uint16_t end[kEight] = {};
  float converted[kEight];
  std::copy(from + whole, from + count, end);
  load_eight(end, converted);
  std::copy_n(converted, count - whole, to + whole);
}

void store_float16(const float* from, std::int64_t count, std::uint16_t* to) {
  const std::int64_t whole = count / kEight * kEight;
  for (std::int64_t i = 0; i < whole; i += kEight) store_eight(from + i, to + i);
  float end[kEight] = {};
  std::uint16_t converted[kEight];
  std::copy(from + whole, from + count, end);
  store_eight(end, converted);
  std::copy_n(converted, count - whole, to + whole);
}

[[noreturn]] void refuse(DType dtype) {
  TPSIM_CHECK(false, "the CPU has no kernels for " + std::string(name_of(dtype)));
}

}  // namespace

void load_floats(const void* from, DType dtype, std::int64_t count, float* to) {
  const auto* half = static_cast<const std::uint16_t*>(from);
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case DType::kBFloat16: return load_bfloat16(half, count, to);
    case DType::kFloat16: return load_float16(half, count, to);
    default: break;
  }
  refuse(dtype);
}

void store_floats(const float* from, std::int64_t count, DType dtype, void* to) {
  auto* half = static_cast<std::uint16_t*>(to);
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case DType::kBFloat16: return store_bfloat16(from, count, half);
    case DType::kFloat16: return store_float16(from, count, half);
    default: break;
  }
  refuse(dtype);
}

const float* row_or_zeros(const Tensor& row, std::int64_t cols, Scratch& scratch) {
  if (row.defined()) return FloatWindow(row, cols, scratch).load(0, cols);
  float* zeros = scratch.floats(cols);
  std::fill_n(zeros, cols, 0.0F);
  return zeros;
}

}  // namespace tpsim
