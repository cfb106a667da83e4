// The constants of a stack and a cluster that measured steps may move: few, and each of them
// something physical. A constant moves along a coordinate, 0 where it stands: the logarithm of a
// factor, or a sum in the constant's own unit.
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
std::string_view name_of(ConstantOwner owner);  // "stack"

// The part of a step that a constant prices. Intervals have a spread for each.
enum class ConstantGroup : std::uint8_t { kHost, kKernels, kNetwork, kWhole };

struct TunableConstant {
  std::string_view key;      // in the file: "host.per_op"
  std::string_view meaning;  // "issue one kernel"
  ConstantOwner owner{};
  ConstantGroup group{};
  // Standard deviation of the coordinate, before anything was measured there.
  double spread = 0;
  // The coordinate is a sum and no factor's logarithm.
  bool is_sum = false;
  double least = 0, most = 1e9;  // of the value
  double (*value)(const Scenario&) = nullptr;
  void (*move)(Scenario&, double coordinate) = nullptr;
  std::string (*text)(double value) = nullptr;
  // How often the host pays it in a step of the plan, where that is not once.
  std::int64_t (*times)(const Plan&) = nullptr;
};

std::span<const TunableConstant> tunable_constants();

// The coordinates between which the constant's value stays within its limits.
CoordinateRange range_of(const TunableConstant& constant, const Scenario& scenario);

}  // namespace tpsim
