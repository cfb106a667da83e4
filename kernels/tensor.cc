#include "kernels/tensor.h"

namespace tpsim {

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  TPSIM_CHECK(extents.size() <= extents_.size(), "a shape has at most four extents");
  for (const std::int64_t extent : extents) extents_[static_cast<std::size_t>(rank_++)] = extent;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

void* Tensor::raw() const {
  if (storage_ == nullptr || storage_->data() == nullptr) return nullptr;
  return storage_->data() + first_ * size_of(dtype_);
}

Tensor Tensor::reshaped(Shape shape) const {
  TPSIM_CHECK(shape.elements() == elements(), "reshape keeps the number of elements");
  return Tensor(storage_, first_, shape, dtype_);
}

Tensor Tensor::slice(std::int64_t first, std::int64_t count) const {
  return slice(first, Shape{count});
}

Tensor Tensor::slice(std::int64_t first, Shape shape) const {
  TPSIM_CHECK(first >= 0 && first + shape.elements() <= elements(), "slice out of range");
  return Tensor(storage_, first_ + first, shape, dtype_);
}

bool Tensor::continues_in(const Tensor& next) const {
  return storage_ == next.storage_ && first_ + elements() == next.first_ && dtype_ == next.dtype_ &&
         cols() == next.cols();
}

Tensor Tensor::joined_with(const Tensor& next) const {
  TPSIM_CHECK(continues_in(next), "the tensors are not adjacent");
  return Tensor(storage_, first_, Shape{rows() + next.rows(), cols()}, dtype_);
}

}  // namespace tpsim
