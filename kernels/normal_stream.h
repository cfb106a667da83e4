// Normal random numbers by position. Element `index` of a stream depends on seed, tensor and index
// only, so that every layout and every device draws the same initial weights.
//
// Definition: key = mix(mix(seed) + tensor_id) and u(n) = ((mix(key ^ n) >> 11) + 1/2) / 2^53.
// Element i is sqrt(-2 ln u(2i)) cos(2 pi u(2i + 1)), computed in double, multiplied by the
// deviation and rounded.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tpsim {

// The output of splitmix64 for a given state (Steele, Lea & Flood 2014).
constexpr std::uint64_t mix(std::uint64_t state) {
  std::uint64_t z = state + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t stream_key(std::uint64_t seed, std::uint64_t tensor_id) {
  return mix(mix(seed) + tensor_id);
}

// Uniform in (0, 1), never 0 or 1.
constexpr double uniform_at(std::uint64_t key, std::uint64_t index) {
  return (static_cast<double>(mix(key ^ index) >> 11) + 0.5) * 0x1.0p-53;
}

// Returns element `index` of the standard normal stream, by the cosine form of the Box-Muller
// transform (Box & Muller 1958).
inline double normal_at(std::uint64_t key, std::uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log(uniform_at(key, 2 * index)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform_at(key, 2 * index + 1));
}

}  // namespace tpsim
