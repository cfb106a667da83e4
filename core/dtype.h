// Element types and their sizes.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpsim {

// The order is that of the numbers in profile files (OpKey::variant).
enum class DType : std::uint8_t {
  kFloat32,
  kBFloat16,
  kFloat16,
  kInt32,
  kUInt8,
  kFloat8,  // E4M3 and E5M2, equally fast: priced, never executed
};

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kBFloat16:
    case DType::kFloat16: return 2;
    case DType::kUInt8:
    case DType::kFloat8: return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "fp32";
    case DType::kBFloat16: return "bf16";
    case DType::kFloat16: return "fp16";
    case DType::kInt32: return "int32";
    case DType::kUInt8: return "uint8";
    case DType::kFloat8: return "fp8";
  }
  return "?";
}

}  // namespace tpsim
