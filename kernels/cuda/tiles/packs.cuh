// Access to elements: fp32 in registers for every dtype in memory. A pack of up to kPack elements
// is read and written 16 bytes at a time (8 bytes where 16-bit elements pair with fp32).
//
// Kernels are compiled for two widths: packs, if rows and addresses are aligned to 16 bytes, and
// single elements. pack_width() selects the width.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/base/check.h"
#include "core/base/dtype.h"
#include "kernels/tensor.h"

namespace tpsim {

inline constexpr int kPack = 8;
// Pack width for arrays that are accessed together. With fp32 arrays it is four, so that adjacent
// threads access adjacent 16 bytes.
template <class... T>
inline constexpr int kPackOf = ((sizeof(T) == 4) || ...) ? 4 : kPack;

__device__ inline float widened(float x) { return x; }
__device__ inline float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float widened(__half x) { return __half2float(x); }

// Rounds to nearest even.
template <class T>
__device__ T narrowed(float x);
template <>
__device__ inline float narrowed<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 narrowed<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half narrowed<__half>(float x) {
  return __float2half_rn(x);
}

// V elements in registers, in their dtype in memory.
template <class T, int V>
struct Raw {
  static constexpr int kBytes = V * static_cast<int>(sizeof(T));
  static_assert(kBytes % 16 == 0 || kBytes == 8 || V == 1, "wide accesses or single elements");
  using Word = std::conditional_t<kBytes % 16 == 0, uint4, uint2>;
  static constexpr int kWordBytes = static_cast<int>(sizeof(Word));
  static constexpr int kWords = kBytes >= kWordBytes ? kBytes / kWordBytes : 1;
  union {
    Word words[kWords];
    T elements[V];
  };
  __device__ Raw() {}

  __device__ void read(const T* from) {
    if constexpr (V == 1) {
      elements[0] = *from;
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = reinterpret_cast<const Word*>(from)[i];
    }
  }
  // Reads memory that the kernel does not write, so that the compiler may move the load before
  // stores.
  __device__ void read_constant(const T* from) {
    if constexpr (V == 1) {
      elements[0] = *from;
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = __ldg(reinterpret_cast<const Word*>(from) + i);
    }
  }
  __device__ void write(T* to) const {
    if constexpr (V == 1) {
      *to = elements[0];
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i) reinterpret_cast<Word*>(to)[i] = words[i];
    }
  }
  // Makes the compiler widen the elements again, instead of keeping fp32 copies in registers
  // between passes.
  __device__ void widen_again() {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      asm volatile("" : "+r"(words[i].x), "+r"(words[i].y), "+r"(words[i].z), "+r"(words[i].w));
    }
  }
  __device__ float operator[](int i) const { return widened(elements[i]); }
  __device__ void set(int i, float x) { elements[i] = narrowed<T>(x); }
};

template <class T, int V>
__device__ inline Raw<T, V> raw_at(const T* from) {
  Raw<T, V> raw;
  raw.read(from);
  return raw;
}

template <class T, int V>
__device__ inline Raw<T, V> constant_at(const T* from) {
  Raw<T, V> raw;
  raw.read_constant(from);
  return raw;
}

// Reads a pack; zeros if the operand is absent.
template <class T, int V>
__device__ inline Raw<T, V> raw_or_zeros(const T* from, std::int64_t at) {
  Raw<T, V> raw;
  if (from != nullptr) {
    raw.read(from + at);
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) raw.set(i, 0.0F);
  }
  return raw;
}

template <class T, int V>
__device__ inline Raw<T, V> constant_or_zeros(const T* from, std::int64_t at) {
  return from != nullptr ? constant_at<T, V>(from + at) : raw_or_zeros<T, V>(nullptr, 0);
}

// An operand whose dtype is known at run time only: gradients and accumulated sums.
struct AnyFloats {
  void* data = nullptr;
  DType dtype = DType::kFloat32;

  __device__ float get(std::int64_t i) const {
    switch (dtype) {
      case DType::kBFloat16: return widened(static_cast<const __nv_bfloat16*>(data)[i]);
      case DType::kFloat16: return widened(static_cast<const __half*>(data)[i]);
      default: return static_cast<const float*>(data)[i];
    }
  }
  __device__ void set(std::int64_t i, float x) const {
    switch (dtype) {
      case DType::kBFloat16:
        static_cast<__nv_bfloat16*>(data)[i] = narrowed<__nv_bfloat16>(x);
        break;
      case DType::kFloat16: static_cast<__half*>(data)[i] = narrowed<__half>(x); break;
      default: static_cast<float*>(data)[i] = x; break;
    }
  }
};

inline AnyFloats any_floats(const Tensor& tensor) {
  return {tensor.defined() ? tensor.raw() : nullptr, tensor.dtype()};
}

// Returns the elements of a tensor on the device; null if undefined.
template <class T>
T* elements_of(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.raw()) : nullptr;
}

// Result of elements_of() without a template argument. It converts to the pointer type of the
// kernel argument or member that it initializes.
struct Elements {
  void* data;
  template <class T>
  operator T*() const {  // NOLINT(google-explicit-constructor)
    return static_cast<T*>(data);
  }
};
inline Elements elements_of(const Tensor& tensor) {
  return {tensor.defined() ? tensor.raw() : nullptr};
}

// Returns kPack if every row of `cols` elements of these tensors starts at a multiple of 16 bytes;
// else 1.
inline int pack_width(std::int64_t cols, std::initializer_list<Tensor> tensors) {
  bool aligned = cols % kPack == 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto least = static_cast<std::uintptr_t>(size_of(tensor.dtype()) == 1 ? kPack : 16);
    aligned = aligned && reinterpret_cast<std::uintptr_t>(tensor.raw()) % least == 0;
  }
  return aligned ? kPack : 1;
}

// A type as a value, to select template arguments.
template <class T>
struct Type {
  using type = T;
};
template <int V>
struct Width {
  static constexpr int value = V;
};

template <class Launch>
void with_type(DType dtype, Launch launch) {
  switch (dtype) {
    case DType::kFloat32: return launch(Type<float>{});
    case DType::kBFloat16: return launch(Type<__nv_bfloat16>{});
    case DType::kFloat16: return launch(Type<__half>{});
    default: TPSIM_CHECK(false, "the GPU has no kernels for " + std::string(name_of(dtype)));
  }
}

template <class Launch>
void with_two_types(DType first, DType second, Launch launch) {
  with_type(first, [&](auto one) { with_type(second, [&](auto other) { launch(one, other); }); });
}

// Calls launch(Type<T>, Width<V>).
template <class Launch>
void with_type_and_width(DType dtype, int width, Launch launch) {
  with_type(dtype, [&](auto type) {
    if (width == kPack) {
      launch(type, Width<kPack>{});
    } else {
      launch(type, Width<1>{});
    }
  });
}

}  // namespace tpsim
