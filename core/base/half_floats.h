// bf16 and fp16 on the host, one number at a time, on any processor. Reference for the faster
// conversions of the devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"

namespace tpsim {

// Rounds to nearest even. Numbers beyond the largest finite one become infinity; NaN stays NaN.
std::uint16_t to_bfloat16(float x);
std::uint16_t to_float16(float x);
float from_bfloat16(std::uint16_t bits);
float from_float16(std::uint16_t bits);

// Converts arrays of any dtype from and to doubles. Integer dtypes are rounded.
void encode(std::span<const double> from, DType dtype, std::byte* to);
void decode(const std::byte* from, DType dtype, std::span<double> to);

}  // namespace tpsim
