// Conversion of tensors to fp32, on which every CPU op computes. 2-byte elements are widened when
// read and rounded to nearest even when written. fp32 elements are used in place.
#pragma once

#include <cstdint>

#include "kernels/cpu/scratch.h"
#include "kernels/tensor.h"

namespace tpsim {

// Convert `count` elements from `dtype` to fp32, and from fp32 to `dtype`.
void load_floats(const void* from, DType dtype, std::int64_t count, float* to);
void store_floats(const float* from, std::int64_t count, DType dtype, void* to);

// Address of element `index` of an array of `dtype`.
inline std::byte* element_address(void* data, DType dtype, std::int64_t index) {
  return static_cast<std::byte*>(data) + index * size_of(dtype);
}

// Access to a tensor's elements as floats, in windows of at most `window` elements.
//
// load() returns the window's values; null for an undefined tensor. blank() returns memory for new
// values, uninitialized. store() writes the memory of the last load() or blank() to the tensor.
class FloatWindow {
 public:
  FloatWindow(const Tensor& tensor, std::int64_t window, Scratch& scratch)
      : data_(tensor.raw()), dtype_(tensor.dtype()) {
    if (data_ != nullptr && dtype_ != DType::kFloat32) buffer_ = scratch.floats(window);
  }

  float* load(std::int64_t first, std::int64_t count) const {
    if (data_ == nullptr) return nullptr;
    if (buffer_ == nullptr) return static_cast<float*>(data_) + first;
    load_floats(element_address(data_, dtype_, first), dtype_, count, buffer_);
    return buffer_;
  }
  float* blank(std::int64_t first) const {
    return buffer_ != nullptr ? buffer_ : static_cast<float*>(data_) + first;
  }
  void store(std::int64_t first, std::int64_t count) const {
    if (buffer_ == nullptr) return;
    store_floats(buffer_, count, dtype_, element_address(data_, dtype_, first));
  }

 private:
  void* data_;
  DType dtype_;
  float* buffer_ = nullptr;
};

// For every row of x: calls row(index of the row's first element in y, values of x, memory for y's
// row) and stores y's row.
template <class Row>
void map_rows(const Tensor& x, const Tensor& y, Scratch& scratch, Row row) {
  const std::int64_t in = x.cols(), out = y.cols();
  const FloatWindow from(x, in, scratch), to(y, out, scratch);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    const float* values = from.load(r * in, in);
    row(r * out, values, to.blank(r * out));
    to.store(r * out, out);
  }
}

// Returns a one-row operand as floats; zeros if it is undefined.
const float* row_or_zeros(const Tensor& row, std::int64_t cols, Scratch& scratch);

}  // namespace tpsim
