// Physical constants of a stack and a cluster that a calibration may change.
//
// Each constant has a fitted coordinate, which is 0 at the constant's present value. Value, range
// and meaning of a constant come from the field list of its file.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/enum_words.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "evidence/calibration/robust_fit.h"

namespace tpsim {

enum class ConstantOwner : std::uint8_t { kStack, kCluster };
template <>
inline constexpr auto kEnumNames<ConstantOwner> = words<2>("stack cluster");

// Part of the step time that a constant affects. Prediction intervals have one spread per group.
enum class ConstantGroup : std::uint8_t { kHost, kKernels, kNetwork, kWhole };
template <>
inline constexpr auto kEnumNames<ConstantGroup> = words<4>("host kernels network whole");

enum class Coordinate : std::uint8_t {
  kFactor,  // logarithm of a factor on the value
  kSum,     // change of the value, in its unit; for values that may be 0
  kExcess,  // logarithm of a factor on the excess over 1
};
template <>
inline constexpr auto kEnumNames<Coordinate> = words<3>("factor sum excess");

struct TunableConstant {
  std::string_view key;  // path in the file: "host.per_op"
  ConstantOwner owner{};
  ConstantGroup group{};
  double spread = 0;  // standard deviation of the coordinate's prior
  Coordinate coordinate = Coordinate::kFactor;
  // Returns how many times a step of the plan contains this host time; null: once.
  std::int64_t (*times)(const Plan&) = nullptr;
  std::array<std::string_view, 3> scaled_too = {};  // keys of the same file with the same factor

  bool is_sum() const { return coordinate == Coordinate::kSum; }
  double value(const Scenario& scenario) const;
  void move(Scenario& scenario, double moved) const;
  std::string text(double value) const;  // with its unit
  std::string meaning() const;
};

std::span<const TunableConstant> tunable_constants();

// Returns the range of the coordinate for which the value stays in the range of its file.
CoordinateRange range_of(const TunableConstant& constant, const Scenario& scenario);

}  // namespace tpsim
