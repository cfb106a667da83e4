// Inputs of a prediction that the user did not state: the software, its settings, its attention
// kernel, the documents of a sequence, the network, and PCIe links. They widen the 90 % interval of
// the plan. The widening is computed by predicting the plan with every alternative in the
// catalogue.
#pragma once

#include <cstdint>
#include <map>
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
#include "sim/step/interval.h"

namespace tpsim {

enum class OpenInput : std::uint8_t { kSoftware, kNetwork, kSettings, kLink, kKernel, kDocuments };
template <>
inline constexpr auto kEnumNames<OpenInput> =
    words<6>("software network settings link attention_kernel documents");

// Names in the catalogue, or paths, with which a scenario was loaded.
struct ScenarioNames {
  std::string model = {};
  std::string cluster = {};
  std::string profile = {};
  std::string stack = {};
  PartValues parts = {};  // replace the stack's own values
  double node_gbps = 0;   // network bandwidth per node in Gbit/s; 0: the cluster's
};

// Inputs that the user did not state. A plan file records them (PlanFile::stack_assumed,
// network_assumed, settings_assumed).
struct Unstated {
  bool software = false;
  bool network = false;
  // Unknown settings in a launch file, assumed not to change the step.
  std::vector<std::string> settings = {};
  friend bool operator==(const Unstated&, const Unstated&) = default;
};

// An unstated input and its effect. Half widths are the upper half of the 90 % interval relative to
// the step: 0.22 means "+22 %".
struct OpenChoice {
  OpenInput input{};
  std::string taken;        // assumed value, such as "megatron-lm"
  std::int64_t others = 0;  // number of alternatives in the catalogue on which the plan can run
  // Standard deviations of log(step) over the alternatives, on each side of the predicted step.
  double slower = 0, faster = 0;
  double left = 1;                  // share of the distances that the stated parts leave
  double half_width_if_stated = 0;  // half width if this input were stated and the others were not
};

// log(step with another value of an unstated input / predicted step) of each plan.
struct OpenShift {
  OpenInput input{};
  std::vector<double> of_plans;
};

struct Assumed {
  std::vector<OpenShift> shifts;  // of all values on which the first plan can run
  std::vector<OpenChoice> open;   // the input whose statement narrows the interval most comes first
  double half_width_all_stated = 0, half_width_all_open = 0;
};

// Step of one plan with an alternative, and the spreads of that step with every input stated.
struct OpenStep {
  Seconds step;
  StepSpreads own;
};
// Step of one plan with each alternative priced so far. Empty if the alternative cannot run the
// plan.
using OpenSteps = std::vector<std::optional<OpenStep>>;

// Widens intervals for unstated inputs. Caches prices between plans. Not thread-safe.
//
// Software: the alternatives are all stacks of the catalogue that can run the plan under the rules
// and limits of their launchers. The distance of an alternative is log(its step / step with the
// assumed stack), both without the stated parts. Each stated part multiplies the distance by a
// factor of at most 1. A part may move time into terms that are less certain. The spread is then
// reduced until the interval is as wide as without any stated part, or as wide as with everything
// stated if that is wider.
// Settings: computed as for software, since an unknown setting is an unknown part of the software.
// Attention kernel: the alternatives are the kernels that the stack's file lists (choices). Stacks
// that always run one kernel list none.
// Documents: FlexAttention masks the documents of a sequence. The alternative to one document is
// documents of the mean length of C4.
// Network: the alternatives are all clusters with the same GPU and as many GPUs per node. Applies
// only to plans that span nodes.
// Link: NCCL over PCIe depends on the host's switches and on peer access. The alternatives are the
// efficiencies and latencies of the catalogue's other PCIe clusters, and the interval ends at them.
// A cluster file states its own link.
class OpenInputs {
 public:
  OpenInputs();  // no unstated inputs: intervals stay as they are
  // `scenario` was loaded from `names`, which contain the assumed stack and cluster. Error if a
  // catalogue entry cannot be read.
  static Result<OpenInputs> in(const Catalogue& catalogue, const Scenario& scenario,
                               const ScenarioNames& names, const Unstated& unstated);
  ~OpenInputs();
  OpenInputs(OpenInputs&&) noexcept;
  OpenInputs& operator=(OpenInputs&&) noexcept;

  // Widens the interval of each plan for its unstated inputs. Returns the inputs of the first plan,
  // and the shifts of all plans.
  Assumed widen(std::span<PlannedRun> runs, int threads = 1);
  Assumed widen(PlannedRun& run) { return widen(std::span(&run, 1)); }

  // Incremental version of widen(). Prices the plan with the next alternative, which takes
  // milliseconds. Returns false if all alternatives are already priced.
  bool price_next(const Plan& plan, OpenSteps& steps);
  Assumed widen(Prediction& prediction, const OpenSteps& steps) const;

 private:
  struct Other;  // an alternative scenario
  struct State;

  // Steps of a stack with its own parts, and with single stated parts that differ from them. Empty
  // if the stack cannot run the plan so.
  struct StackSteps {
    std::optional<OpenStep> own = {};
    std::map<StackPart, std::optional<OpenStep>> with_part = {};
    std::optional<OpenStep> with(StackPart part) const {
      const auto found = with_part.find(part);
      return found == with_part.end() ? own : found->second;
    }
  };

  std::vector<OpenShift> shifts_of(std::span<const PlannedRun> runs,
                                   const std::vector<OpenSteps>& by_other,
                                   const Assumed& assumed) const;
  std::optional<OpenStep> step_on(Other& other, const Plan& plan) const;
  // Returns the steps of the stack at index `first` of the alternatives.
  StackSteps steps_at(std::size_t first, const OpenSteps& steps) const;
  // Returns the choice of this input. `own`: the predicted step. Nothing if no alternative can run
  // the plan.
  std::optional<OpenChoice> choice_of(OpenInput input, const OpenStep& own,
                                      const OpenSteps& steps) const;

  // The same for inputs whose alternatives are all known: the interval reaches the fastest and the
  // slowest of them. Nothing if all have the same step.
  std::optional<OpenChoice> choice_of_range(OpenInput input, const OpenStep& own,
                                            const OpenSteps& steps) const;

  std::unique_ptr<State> state_;
};

}  // namespace tpsim
