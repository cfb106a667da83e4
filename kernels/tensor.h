// A tensor: a contiguous, row-major view of a piece of device memory.
//
// Tensors are cheap handles. Views share their Storage. When the last view is destroyed, the memory
// returns to the device and the recorder is notified. A traced memory peak therefore follows from
// the scopes of tensors in the code.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "core/base/check.h"
#include "core/base/dtype.h"

namespace tpsim {

class Device;

// Up to four extents.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int i) const { return extents_[static_cast<std::size_t>(i)]; }
  std::int64_t elements() const;
  // Rows: product of all extents but the last. Columns: the last extent.
  std::int64_t rows() const { return elements() / cols(); }
  std::int64_t cols() const {
    return rank_ == 0 ? 1 : extents_[static_cast<std::size_t>(rank_ - 1)];
  }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, 4> extents_{};
};

// Owned device memory; only Device::allocate() creates it.
class Storage {
 public:
  Storage(Device& device, void* data, std::int64_t bytes, std::uint32_t id)
      : device_(device), data_(data), bytes_(bytes), id_(id) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::int64_t bytes() const { return bytes_; }
  std::uint32_t id() const { return id_; }  // as in Recorder::allocated()

 private:
  Device& device_;
  void* data_;  // null on the meta device
  std::int64_t bytes_;
  std::uint32_t id_;
};

class Tensor {
 public:
  Tensor() = default;  // undefined: stands for an absent operand
  Tensor(std::shared_ptr<Storage> storage, std::int64_t first, Shape shape, DType dtype)
      : storage_(std::move(storage)), first_(first), shape_(shape), dtype_(dtype) {}

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::int64_t bytes() const { return elements() * size_of(dtype_); }
  std::int64_t rows() const { return shape_.rows(); }
  std::int64_t cols() const { return shape_.cols(); }

  // Returns the address of the first element. T must have the size of the dtype. Null on the meta
  // device.
  template <class T>
  T* data() const {
    TPSIM_CHECK(sizeof(T) == static_cast<std::size_t>(size_of(dtype_)), "element size");
    if (storage_ == nullptr || storage_->data() == nullptr) return nullptr;
    return reinterpret_cast<T*>(storage_->data()) + first_;
  }
  void* raw() const;
  std::uint32_t storage_id() const { return storage_->id(); }  // of a defined tensor

  // Returns a view of the same elements with another shape.
  Tensor reshaped(Shape shape) const;
  // Returns a view of the elements from flat index `first` on, as a vector or with a shape.
  Tensor slice(std::int64_t first, std::int64_t count) const;
  Tensor slice(std::int64_t first, Shape shape) const;

  // Whether `next` directly follows this tensor in the same storage, with equal dtype and columns.
  // joined_with() then returns both as one tensor [rows, cols].
  bool continues_in(const Tensor& next) const;
  Tensor joined_with(const Tensor& next) const;

 private:
  std::shared_ptr<Storage> storage_;
  std::int64_t first_ = 0;  // in elements
  Shape shape_;
  DType dtype_ = DType::kFloat32;
};

}  // namespace tpsim
