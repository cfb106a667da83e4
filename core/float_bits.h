// Two-byte floating point on the host: widening, and rounding to nearest even.
#pragma once

#include <cstdint>

namespace tpsim {

float float_from_bf16(std::uint16_t bits);
float float_from_fp16(std::uint16_t bits);
std::uint16_t bf16_from_float(float value);
std::uint16_t fp16_from_float(float value);

}  // namespace tpsim
