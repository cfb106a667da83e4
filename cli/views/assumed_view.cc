#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "app/scenario/open_inputs.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// Returns how the user can state the input. A saved plan must be searched again, because options
// that repeat the plan file have no effect. Settings of launch files are stated with --set at
// import.
std::string remedy_for(OpenInput input, bool is_saved) {
  const std::string option = stating_option(input);
  if (input == OpenInput::kSettings) return "by import with " + option + " NAME=null for each";
  if (input == OpenInput::kLink) {
    return "with " + option + " FILE, which calibrate --save-cluster writes from nccl-tests";
  }
  if (input == OpenInput::kDocuments) {
    return "with " + option + " FILE, whose attention.extras.chunk is the mean document length";
  }
  return is_saved ? "if planned again with " + option : "with " + option;
}

}  // namespace

void write_assumed(TextReport& out, const NamedScenario& named) {
  const StackSpec& stack = named.scenario.stack;
  if (!stack.spread_programs.empty()) {
    out.prose_row("program",
                  fmt::format("not stated; {} describes that of {}. The interval holds for other "
                              "programs too. tpsim calibrate with your runs narrows it",
                              stack.name, stack.spread_programs));
  }
  const Assumed& assumed = named.assumed;
  if (assumed.open.empty()) return;
  const std::string taken = joined_text(assumed.open, ", ", [](const OpenChoice& one) {
    return fmt::format("{} {}", name_of(one.input), printable(one.taken));
  });
  // Only options that narrow the interval by a printed percent.
  std::vector<std::string> narrower, faster;
  for (const OpenChoice& one : assumed.open) {
    const std::string remedy = remedy_for(one.input, named.is_saved);
    const std::string upper = percent(one.half_width_if_stated);
    if (one.slower == 0 && one.faster > 0) {
      faster.push_back(fmt::format("{} {}", name_of(one.input), remedy));
    } else if (upper != percent(assumed.half_width_all_open)) {
      narrower.push_back(fmt::format("to +{} {}", upper, remedy));
    }
  }
  std::string text = taken;
  if (!narrower.empty()) {
    text += fmt::format(". The upper end of the interval falls from +{} {}",
                        percent(assumed.half_width_all_open), fmt::join(narrower, ", "));
  }
  if (!faster.empty()) {
    text += fmt::format(". The lower end rises if stated: {}", fmt::join(faster, ", "));
  }
  out.prose_row("assumed", text);
}

void write_choice(TextReport& out, const NamedScenario& named) {
  if (!named.risk) return;
  const ChoiceRisk& risk = *named.risk;
  std::string text = fmt::format(
      "the fastest plan of the ranking with a probability of {}; expected loss against the fastest "
      "{}. Running row {} beside it leaves {}",
      percent_text(risk.chance_fastest), percent_text(risk.expected_loss), risk.rival + 1,
      percent_text(risk.loss_if_run));
  if (risk.input) {
    text += fmt::format("; stating the {} {} leaves {}", name_of(*risk.input),
                        remedy_for(*risk.input, named.is_saved), percent_text(risk.loss_if_stated));
  }
  out.prose_row("choice", text);
}

std::string batch_text(const PlannedRun& run) {
  return fmt::format("a global batch of {} takes {} on {}, {} tokens/s",
                     count_text(run.plan.global_batch), time_text(run.predicted.step),
                     gpus_text(gpu_count(run.plan)),
                     count_text(std::llround(run.predicted.tokens_per_s)));
}

void write_tried(TextReport& out, const NamedScenario& named) {
  if (!named.tried.empty()) {
    out.prose_row("parts", joined_text(named.tried, "; ", [](const TriedParts& one) {
                    return fmt::format("{} {}", to_string(one.parts),
                                       one.step ? time_text(*one.step) : "has no plan that fits");
                  }));
  }
  std::vector<std::string> untried;
  for (const TriedParts& one : named.untried) {
    const auto& [part, value] = *one.parts.begin();
    untried.push_back(fmt::format("this plan with {} {} takes {}", option_of(part),
                                  text_of(row_of(part), value), time_text(*one.step)));
  }
  if (named.other_batch) untried.push_back(batch_text(*named.other_batch));
  if (!untried.empty()) out.prose_row("not searched", fmt::format("{}", fmt::join(untried, "; ")));
}

}  // namespace tpsim::cli
