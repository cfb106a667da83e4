// Physical constants of a stack and a cluster that a calibration may change.
//
// Each constant has a fitted coordinate, which is 0 at the constant's present value. The coordinate
// is the logarithm of a factor, or a change in the constant's unit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "evidence/calibration/robust_fit.h"

namespace tpsim {

enum class ConstantOwner : std::uint8_t { kStack, kCluster };
std::string_view name_of(ConstantOwner owner);  // "stack" or "cluster"

// Part of the step time that a constant affects. Prediction intervals have one spread per group.
enum class ConstantGroup : std::uint8_t { kHost, kKernels, kNetwork, kWhole };

struct TunableConstant {
  std::string_view key;      // key in the file: "host.per_op"
  std::string_view meaning;  // "issue one kernel"
  ConstantOwner owner{};
  ConstantGroup group{};
  // Standard deviation of the coordinate's prior.
  double spread = 0;
  // Whether the coordinate is added to the value. Otherwise it is the logarithm of a factor.
  bool is_sum = false;
  double least = 0, most = 1e9;  // limits of the value
  double (*value)(const Scenario&) = nullptr;
  void (*move)(Scenario&, double coordinate) = nullptr;
  std::string (*text)(double value) = nullptr;
  // Returns how many times a step of the plan contains this host time; null: once.
  std::int64_t (*times)(const Plan&) = nullptr;
};

std::span<const TunableConstant> tunable_constants();

// Returns the range of the coordinate for which the value stays between `least` and `most`.
CoordinateRange range_of(const TunableConstant& constant, const Scenario& scenario);

}  // namespace tpsim
