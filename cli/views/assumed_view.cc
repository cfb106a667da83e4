#include <fmt/format.h>

#include "app/scenario/open_inputs.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
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
  const std::string option = option_of(field_of(input));
  if (input == OpenInput::kSettings) return "by import with " + option + " NAME=null for each";
  return is_saved ? "if planned again with " + option : "with " + option;
}

}  // namespace

std::string assumed_view(const Terminal& terminal, const NamedScenario& named) {
  const Assumed& assumed = named.assumed;
  if (assumed.open.empty()) return "";
  std::string what, narrower;
  for (const OpenChoice& one : assumed.open) {
    what +=
        fmt::format("{}{} {}", what.empty() ? "" : ", ", name_of(one.input), printable(one.taken));
    narrower +=
        fmt::format("{}to +{} {}", narrower.empty() ? "" : ", ", percent(one.half_width_if_stated),
                    remedy_for(one.input, named.is_saved));
  }
  const std::string text = fmt::format("{}. The upper end of the interval falls from +{} {}", what,
                                       percent(assumed.half_width_all_open), narrower);
  return "  " + terminal.paint("assumed      ", Ink::kDim) +
         wrapped(text, terminal.room(15, 85), 15) + "\n";
}

std::string tried_view(const Terminal& terminal, const NamedScenario& named) {
  const auto line = [&](const char* name, const std::string& text) {
    return "  " + terminal.paint(fmt::format("{:<13}", name), Ink::kDim) +
           wrapped(text, terminal.room(15, 85), 15) + "\n";
  };
  std::string lines;
  if (!named.tried.empty()) {
    lines += line("parts", joined_text(named.tried, "; ", [](const TriedParts& one) {
                    return fmt::format("{} {}", to_string(one.parts),
                                       one.step ? time_text(*one.step) : "has no plan that fits");
                  }));
  }
  if (!named.untried.empty()) {
    lines += line("not searched", joined_text(named.untried, "; ", [](const TriedParts& one) {
                    const auto& [part, value] = *one.parts.begin();
                    return fmt::format("this plan with {} {} takes {}", option_of(part),
                                       text_of(row_of(part), value), time_text(*one.step));
                  }));
  }
  return lines;
}

}  // namespace tpsim::cli
