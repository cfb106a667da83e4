#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/answers/campaign_answer.h"
#include "app/answers/export_answer.h"
#include "cli/options/values.h"
#include "cli/views/plan_view.h"
#include "core/base/text.h"
#include "core/scenario/measured_stack.h"

namespace tpsim::cli {
namespace {

// Returns a round number of tokens that the plan trains in about a week: "200B".
std::string tokens_of_week(const Prediction& predicted) {
  const double tokens = predicted.tokens_per_s * 7 * 24 * 3600;
  const double unit = std::pow(10, std::floor(std::log10(std::max(1.0, tokens))));
  const double digits = tokens / unit;
  const double rounded = (digits < 2 ? 1 : digits < 5 ? 2 : 5) * unit;
  if (rounded < 1e9) return fmt::format("{:.0f}M", std::ceil(rounded / 1e6));
  return rounded < 1e12 ? fmt::format("{:.0f}B", rounded / 1e9)
                        : fmt::format("{:.0f}T", rounded / 1e12);
}

}  // namespace

void write_next(TextReport& out, const Arguments& arguments, const NamedScenario& named,
                const PlannedRun& best) {
  const std::string quoted = shell_quoted(arguments["--save"].value_or("plan.json"));
  const std::string program = printable(arguments.program);
  const std::size_t columns = out.terminal().room(0, TextReport::kColumns);
  out.heading("NEXT");
  const auto add = [&](const std::string& command) {
    out.line("{}", continued("  " + command, columns));
  };
  if (!arguments.has("--save")) {
    add(fmt::format("{} --save {}", printable(arguments.command_line), quoted));
  }
  add(fmt::format("{} simulate {} --trace timeline.json   # for ui.perfetto.dev", program, quoted));
  add(fmt::format("{} explain {}   # every term with its formula and source", program, quoted));
  if (const auto launcher = advised_export(named, best.plan)) {
    add(fmt::format("{} export {} --to {} -o launch   # and check-log launch.log {} once it runs",
                    program, quoted, name_of(*launcher), quoted));
  }
  if (named.cluster == kThisMachine) {
    add(fmt::format("{} validate {}   # train a few steps here and compare", program, quoted));
  }
  if (load_assumptions({}, named).ok()) {
    add(fmt::format("{} campaign {} --tokens {}   # time, energy, money", program, quoted,
                    tokens_of_week(best.predicted)));
  }
}

}  // namespace tpsim::cli
