// Constants and parts of a stack and a cluster, fitted to measured steps.
//
// The logarithm of measured over predicted is brought down by moving the constants of
// tunable_constants() away from where they stand, each at a cost by its prior, and by
// changing single parts of the software where the rows say clearly that it is another one. No row
// has a constant of its own, and a run that lies far off moves little
// (evidence/calibration/robust_fit.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"
#include "evidence/calibration/robust_fit.h"

namespace tpsim {

// The constants of a stack and a cluster that measured steps may move: few, and each of them
// something physical. A constant moves along a coordinate, 0 where it stands: the logarithm of a
// factor, or a sum in the constant's own unit.

enum class ConstantOwner : std::uint8_t { kStack, kCluster };
std::string_view name_of(ConstantOwner owner);  // "stack"

// What of a step it prices, as far as intervals tell it apart.
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

// A step that ran, and what it is predicted from.
struct MeasuredStep {
  std::string id;
  Scenario scenario;
  PartValues stated;  // parts that are known of this run: no fit changes them
  Plan plan;
  Seconds measured;
};

struct CalibrationChoices {
  bool stack = true, cluster = true;  // whose constants may move
  int threads = 1;
  std::function<void(double share)> progress = {};
};

struct FittedConstant {
  const TunableConstant* constant = nullptr;
  double before = 0, after = 0;   // values
  double moved = 0;               // along the coordinate
  double error = 0;               // standard deviation of that, with the rows known
  double prior = 0;               // and without them
  double error_of_value() const;  // likewise, of the value
  std::string error_text() const;
  // Share of the prior's variance that the rows took away: 0 where they say nothing.
  double information() const;
};

struct FittedPart {
  StackPart part{};
  std::int64_t before = 0, after = 0;
  double gain = 0;  // what it is worth, less what it must be: in twice logarithms of likelihood
};

struct FittedStep {
  std::string id;
  double measured = 0;
  double before = 0, after = 0;  // predicted
  double left_out = 0;           // predicted by a fit to rows of other groups
};

struct Calibration {
  std::vector<FittedConstant> constants;  // all that may move, in the order of their table
  std::vector<FittedPart> parts;
  std::vector<FittedStep> steps;
  // Share of the fit's way that the constants went: less than 1 where rows left out were predicted
  // worse by it than before.
  double shrinkage = 1;
  double noise = 0;                 // scale of what is left
  double effective_parameters = 0;  // effective number of constants
  // Of rows that the fit has not seen, as an interval needs it: residual_spread of the stack.
  double spread = 0;
  double host_spread = 0, kernel_spread = 0, network_spread = 0;  // see CalibrationFacts

  double error_before() const;  // mean, as a share
  double error_after() const;
  double error_left_out() const;  // as they say of rows that they have not seen
};

// With what was found; `stated` parts stay.
Scenario calibrated(Scenario scenario, const Calibration& calibration, const PartValues& stated);

// An error where no step can be predicted.
Result<Calibration> calibrate(const std::vector<MeasuredStep>& steps,
                              const CalibrationChoices& choices);

}  // namespace tpsim
