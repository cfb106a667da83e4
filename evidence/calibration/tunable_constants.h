// Physical constants of a stack and a cluster that a calibration may change.
//
// Each constant has a coordinate that starts at 0: the logarithm of a factor, or a sum in the
// constant's unit.
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

// The part of a step that a constant prices. Intervals have a spread per group.
enum class ConstantGroup : std::uint8_t { kHost, kKernels, kNetwork, kWhole };

struct TunableConstant {
  std::string_view key;      // key in the file: "host.per_op"
  std::string_view meaning;  // "issue one kernel"
  ConstantOwner owner{};
  ConstantGroup group{};
  // Standard deviation of the coordinate before any measurement.
  double spread = 0;
  // Whether the coordinate is a sum instead of the logarithm of a factor.
  bool is_sum = false;
  double least = 0, most = 1e9;  // limits of the value
  double (*value)(const Scenario&) = nullptr;
  void (*move)(Scenario&, double coordinate) = nullptr;
  std::string (*text)(double value) = nullptr;
  // How often the host pays the time in a step of the plan; null: once.
  std::int64_t (*times)(const Plan&) = nullptr;
};

std::span<const TunableConstant> tunable_constants();

// Returns the coordinates for which the value stays within its limits.
CoordinateRange range_of(const TunableConstant& constant, const Scenario& scenario);

}  // namespace tpsim
