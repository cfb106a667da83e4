// Unstated inputs of a prediction: the software and the network. The plan's 90 % interval is
// widened by the predicted steps on the catalogue's alternatives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"
#include "sim/layers/layer_pricer.h"
#include "sim/step/load_scenario.h"

namespace tpsim {

enum class OpenInput : std::uint8_t { kSoftware, kNetwork, kSettings };
template <>
inline constexpr auto kEnumNames<OpenInput> = words<3>("software network settings");

// Inputs that the user did not state. A plan file records them (PlanFile::stack_assumed,
// network_assumed, settings_assumed).
struct Unstated {
  bool software = false;
  bool network = false;
  std::vector<std::string> settings = {};  // unknown settings of a launch file, assumed neutral
  friend bool operator==(const Unstated&, const Unstated&) = default;
};

// An unstated input. Half widths are the upper half of the 90 % interval relative to the step: 0.22
// for "+22 %".
struct OpenChoice {
  OpenInput input{};
  std::string taken;        // assumed value, such as "megatron-lm"
  std::int64_t others = 0;  // number of alternatives in the catalogue on which the plan can run
  // Standard deviations of log(step) over the alternatives, on each side of the predicted step.
  double slower = 0, faster = 0;
  double half_width_if_stated = 0;  // if this input were stated and all others unchanged
};

struct Assumed {
  std::vector<OpenChoice> open;  // the input that would narrow the interval most comes first
  double half_width_all_stated = 0, half_width_all_open = 0;
};

// Steps of one plan on each alternative, as far as priced; empty if the plan cannot run there.
using OpenSteps = std::vector<std::optional<Seconds>>;

// Widens intervals by unstated inputs. Prices are cached between plans. Not thread-safe.
//
// Software: alternatives are all stacks with a launcher's rules or limits that can run the plan.
// Stated parts that differ from the assumed stack are set in every alternative. A stated part that
// agrees with the assumed stack scales the distance of an alternative by at most 1, so that a
// statement never widens an interval. The distance is log(step / step on the assumed stack).
// Settings: as for software, since an unknown setting is an unknown part of the software.
// Network: for plans that span nodes, alternatives are all clusters with these GPUs and as many
// GPUs per node.
class OpenInputs {
 public:
  OpenInputs();  // everything is stated
  // `scenario` was loaded from `names`, which contain the assumed stack and cluster. Error if a
  // catalogue entry cannot be read.
  static Result<OpenInputs> in(const Catalogue& catalogue, const Scenario& scenario,
                               const ScenarioNames& names, const Unstated& unstated);
  ~OpenInputs();
  OpenInputs(OpenInputs&&) noexcept;
  OpenInputs& operator=(OpenInputs&&) noexcept;

  // Widens the interval of each plan by its unstated inputs. Returns the inputs of the first plan.
  Assumed widen(std::span<PlannedRun> runs, int threads = 1);
  Assumed widen(PlannedRun& run) { return widen(std::span(&run, 1)); }

  // Incremental version: prices the plan on the next alternative, in milliseconds. Returns false if
  // all are priced.
  bool price_next(const Plan& plan, OpenSteps& steps);
  Assumed widen(Prediction& prediction, const OpenSteps& steps) const;

 private:
  struct Other;  // an alternative scenario
  struct State;

  std::optional<Seconds> step_on(Other& other, const Plan& plan) const;
  // Logarithms of step / `step` for the alternatives that can run the plan.
  std::vector<double> distances(OpenInput input, Seconds step, const OpenSteps& steps) const;

  std::unique_ptr<State> state_;
};

// Predicts a plan as `tpsim simulate` does. The software counts as unstated if the names have no
// stack.
Result<PlannedRun> simulate(const Catalogue& catalogue, const ScenarioNames& names,
                            const Plan& plan);
// Predicts a saved plan as `tpsim simulate` does.
Result<PlannedRun> simulate(const Catalogue& catalogue, const PlanFile& file);

}  // namespace tpsim
