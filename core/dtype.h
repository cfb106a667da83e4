// Element types and their sizes.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpsim {

enum class DType : std::uint8_t { kFloat32, kBFloat16, kFloat16, kInt32, kUInt8 };

constexpr std::int64_t size_of(DType dtype) {
  if (dtype == DType::kUInt8) return 1;
  return dtype == DType::kFloat32 || dtype == DType::kInt32 ? 4 : 2;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "fp32";
    case DType::kBFloat16: return "bf16";
    case DType::kFloat16: return "fp16";
    case DType::kInt32: return "int32";
    case DType::kUInt8: return "uint8";
  }
  return "?";
}

}  // namespace tpsim
