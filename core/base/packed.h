// Serializes values between processes of the same program. Not a file format.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/check.h"

namespace tpsim {

class Packer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads the values of a Packer in the order in which they were put.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    TPSIM_CHECK(bytes_.size() >= sizeof(T), "no more bytes are unpacked than were packed");
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }

 private:
  std::string_view bytes_;
};

}  // namespace tpsim
