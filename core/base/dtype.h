// Element types and their sizes.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpsim {

// Profile files contain these numbers (OpKey::variant): the order must not change.
enum class DType : std::uint8_t {
  kFloat32,
  kBFloat16,
  kFloat16,
  kInt32,
  kUInt8,
  // Formats of quantized GEMM operands, with their scale factors.
  kFloat8,       // E4M3 and E5M2, equally fast; one scale per tensor
  kFloat8Block,  // fp8 with a scale per 128 elements, or per 128 x 128 block of weights
  kMxFloat8,     // fp8 with a power-of-two scale per 32 elements (OCP Microscaling, MXFP8)
  kNvFloat4,     // E2M1 with an E4M3 scale per 16 elements (NVFP4)
};

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kBFloat16:
    case DType::kFloat16: return 2;
    case DType::kUInt8:
    case DType::kFloat8:
    case DType::kFloat8Block:
    case DType::kMxFloat8:
    case DType::kNvFloat4: return 1;  // 4-bit elements are only handled in pairs
  }
  return 0;
}

// Bytes per element, including the element's share of the scale factors.
constexpr double bytes_per_element(DType dtype) {
  switch (dtype) {
    case DType::kFloat8Block: return 1 + 4.0 / 128;
    case DType::kMxFloat8: return 1 + 1.0 / 32;
    case DType::kNvFloat4: return 0.5 + 1.0 / 16;
    default: return static_cast<double>(size_of(dtype));
  }
}

constexpr bool is_narrow(DType dtype) { return dtype >= DType::kFloat8; }

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "fp32";
    case DType::kBFloat16: return "bf16";
    case DType::kFloat16: return "fp16";
    case DType::kInt32: return "int32";
    case DType::kUInt8: return "uint8";
    case DType::kFloat8: return "fp8";
    case DType::kFloat8Block: return "fp8_block";
    case DType::kMxFloat8: return "mxfp8";
    case DType::kNvFloat4: return "nvfp4";
  }
  return "?";
}

// Whether collectives can reduce the dtype: fp32, bf16, fp16.
constexpr bool is_floating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

}  // namespace tpsim
