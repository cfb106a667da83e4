// Inputs of a prediction that nobody stated: the software, the network. The catalogue has others
// that the same plan could run on, and their steps widen the plan's 90 % interval.
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

// The inputs that nobody stated. A plan file records them (PlanFile::stack_assumed,
// network_assumed, settings_assumed).
struct Unstated {
  bool software = false;
  bool network = false;
  std::vector<std::string> settings = {};  // of a launch file, taken to change nothing
  friend bool operator==(const Unstated&, const Unstated&) = default;
};

// Half of a 90 % interval is given as a share of the step towards its slow side: 0.22 for "+22 %".
struct OpenChoice {
  OpenInput input{};
  std::string taken;        // stands in for what nobody stated: "megatron-lm"
  std::int64_t others = 0;  // of the catalogue that the plan could run on as well
  // Standard deviations of the step's logarithm over the others, on each side of the step.
  double slower = 0, faster = 0;
  double half_width_if_stated = 0;  // with everything else as open as it is
};

struct Assumed {
  std::vector<OpenChoice> open;  // what would narrow the interval most comes first
  double half_width_all_stated = 0, half_width_all_open = 0;
};

// A plan's steps with each of the others in turn, as far as they are known; none where the plan
// cannot run there.
using OpenSteps = std::vector<std::optional<Seconds>>;

// Software: every stack with a launcher's rules or limits that runs this very plan, with the parts
// that were stated otherwise than the taken stack has them. A part that was stated as the taken
// stack has it leaves a share of at most 1 of another stack's distance, the logarithm of its step
// over the taken one's: such a statement never widens an interval. Settings: the same, since an
// unknown setting is a part of the software that is not known; no more can be said of it. Network:
// every cluster with these GPUs and as many of them a node, for plans that span nodes. Prices are
// kept between plans. Not for two threads at once.
class OpenInputs {
 public:
  OpenInputs();  // everything is stated
  // `scenario` as loaded by `names`, of which the stack and the cluster are the ones that were
  // taken. Fails where an entry of the catalogue cannot be read.
  static Result<OpenInputs> in(const Catalogue& catalogue, const Scenario& scenario,
                               const ScenarioNames& names, const Unstated& unstated);
  ~OpenInputs();
  OpenInputs(OpenInputs&&) noexcept;
  OpenInputs& operator=(OpenInputs&&) noexcept;

  // Widens the interval of each plan by what is open to that plan. Returns it for the first plan.
  Assumed widen(std::span<PlannedRun> runs, int threads = 1);
  Assumed widen(PlannedRun& run) { return widen(std::span(&run, 1)); }

  // The same in pieces that take milliseconds: prices the plan once more. False when all is priced.
  bool price_next(const Plan& plan, OpenSteps& steps);
  Assumed widen(Prediction& prediction, const OpenSteps& steps) const;

 private:
  struct Other;  // a scenario as it could be as well
  struct State;

  std::optional<Seconds> step_on(Other& other, const Plan& plan) const;
  // Logarithms of the others' steps over `step`, for others that run the plan.
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
