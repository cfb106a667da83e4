// tpsim compare: prints a table with one column per plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/commands/commands.h"
#include "cli/options/fit.h"
#include "cli/options/inputs.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "cli/views/report_json.h"
#include "core/base/files.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "gui/draw/comparison_picture.h"
#include "sim/step/order.h"
#include "sim/step/simulate.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kMostPlans = 12;
constexpr double kTokensOfCost = 1e9;  // GPU-hours are shown per this number of tokens

struct Compared {
  std::string file;
  NamedScenario named;
  PlannedRun run;
};

double gpu_hours(const Compared& one) {
  const double tokens = one.run.predicted.tokens_per_s;
  return static_cast<double>(gpu_count(one.run.plan)) * kTokensOfCost / tokens / 3600;
}

double tokens_per_gpu(const Compared& one) {
  return one.run.predicted.tokens_per_s / static_cast<double>(gpu_count(one.run.plan));
}

Result<Compared> load(const Arguments& arguments, const std::string& path) {
  Arguments own = arguments;
  own.positional = path;
  TPSIM_TRY(const PlanFile file, read_plan(path));
  Compared one;
  one.file = path;
  TPSIM_TRY(one.named, load_scenario(own, file));
  one.run.plan = file.plan;
  TPSIM_TRY(one.run.predicted, simulate(one.named.scenario, file.plan));
  return one;
}

Result<std::vector<Compared>> load_all(const Arguments& arguments) {
  const std::vector<std::string> paths = arguments.words();
  if (paths.size() < 2 || paths.size() > kMostPlans) {
    return bad_input(paths.size() == 1 ? "only one plan was given"
                                       : fmt::format("{} plans were given", paths.size()),
                     "compare",
                     fmt::format("give two to {} plans: tpsim compare a.json b.json", kMostPlans));
  }
  std::vector<Compared> all;
  for (const std::string& path : paths) {
    TPSIM_TRY(all.emplace_back(), load(arguments, path));
  }
  return all;
}

// A row of the table: a name, and one text per plan.
struct Line {
  std::string name;
  std::vector<std::string> values;
};

template <class Value>
Line line_of(std::string name, const std::vector<Compared>& all, Value value) {
  Line line{std::move(name), {}};
  for (const Compared& one : all) line.values.push_back(value(one));
  return line;
}

bool differs(const Line& line) {
  return std::any_of(line.values.begin(), line.values.end(),
                     [&](const std::string& value) { return value != line.values.front(); });
}

// Returns the settings that differ between the plans.
std::vector<Line> differences(const std::vector<Compared>& all) {
  std::vector<Line> lines;
  const auto add = [&](std::string name, auto value) {
    Line line = line_of(std::move(name), all, value);
    if (differs(line)) lines.push_back(std::move(line));
  };
  add("model", [](const Compared& one) { return one.named.scenario.model.name; });
  add("sequence", [](const Compared& one) { return std::to_string(one.named.scenario.model.seq); });
  add("cluster", [](const Compared& one) { return one.named.cluster; });
  add("profile", [](const Compared& one) { return one.named.profile; });
  add("stack", [](const Compared& one) { return one.named.stack; });
  add("parts", [](const Compared& one) {
    return one.named.parts.empty() ? std::string("as in the stack") : to_string(one.named.parts);
  });
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;
    add(std::string(row.title),
        [&](const Compared& one) { return text_of(one.run.plan, row.setting); });
  }
  return lines;
}

// Whether the probability of the order of the plans can be computed. It requires that their
// prediction errors are largely shared: same model, batch and machine (sim/step/order.h).
bool shares_errors(const std::vector<Compared>& all) {
  const Compared& first = all.front();
  return std::all_of(all.begin(), all.end(), [&](const Compared& one) {
    return one.named.scenario.model.name == first.named.scenario.model.name &&
           one.named.scenario.model.seq == first.named.scenario.model.seq &&
           one.named.cluster == first.named.cluster && one.named.profile == first.named.profile &&
           one.run.plan.global_batch == first.run.plan.global_batch;
  });
}

std::string order_text(const Compared& first, const Compared& one) {
  const Seconds a = one.run.predicted.step, b = first.run.predicted.step;
  const double sure = probability_faster(a, b);
  const bool ties = is_tie(std::min(a, b), std::max(a, b));
  return fmt::format("{:.0f} % sure{}", sure * 100, ties ? ", a tie" : "");
}

std::vector<Line> results(const std::vector<Compared>& all) {
  const auto predicted = [&](std::string name, auto value) {
    return line_of(std::move(name), all,
                   [&](const Compared& one) { return value(one.run.predicted); });
  };
  std::vector<Line> lines = {
      line_of("GPUs", all, [](const Compared& one) { return count_text(gpu_count(one.run.plan)); }),
      predicted("step, s",
                [](const Prediction& p) { return fmt::format("{:.4g}", p.step.value()); }),
      predicted("90 % interval, s",
                [](const Prediction& p) {
                  return fmt::format("{:.4g} to {:.4g}", p.step_low.value(), p.step_high.value());
                }),
      line_of("tokens/s a GPU", all,
              [](const Compared& one) { return count_text(std::llround(tokens_per_gpu(one))); }),
      predicted("MFU", [](const Prediction& p) { return percent_text(p.mfu); }),
      predicted("memory, GiB", [](const Prediction& p) { return gib_text(p.peak); }),
      predicted("p(OOM)", [](const Prediction& p) { return chance_text(p.p_oom); }),
      predicted("fits in memory",
                [](const Prediction& p) { return std::string(fits_in_memory(p) ? "yes" : "NO"); }),
      line_of("GPU-hours a billion tokens", all,
              [](const Compared& one) { return fmt::format("{:.1f}", gpu_hours(one)); }),
  };
  if (shares_errors(all)) {
    lines.push_back(line_of("faster than the first", all, [&](const Compared& one) {
      return &one == &all.front() ? std::string("-") : order_text(all.front(), one);
    }));
  }
  return lines;
}

std::vector<Line> terms(const std::vector<Compared>& all) {
  std::vector<Line> lines;
  for (const StepTerm term : kStepTerms) {
    const auto time = [&](const Compared& one) { return time_of(one.run.predicted, term).value(); };
    const bool any =
        std::any_of(all.begin(), all.end(), [&](const Compared& one) { return time(one) >= 5e-5; });
    if (!any) continue;
    lines.push_back(line_of(plain(name_of(term)), all,
                            [&](const Compared& one) { return fmt::format("{:.4f}", time(one)); }));
  }
  return lines;
}

std::string table_of(const Terminal& terminal, const std::vector<Compared>& all,
                     const std::vector<Line>& lines) {
  std::vector<Column> columns = {{"", Align::kLeft}};
  for (const Compared& one : all) {
    columns.push_back({printable(std::filesystem::path(one.file).stem().string())});
  }
  Table table(std::move(columns));
  for (const Line& line : lines) {
    std::vector<Cell> row = {line.name};
    for (const std::string& value : line.values) row.emplace_back(printable(value));
    table.add_row(std::move(row));
  }
  return table.text(terminal);
}

// Returns one line for each plan that does not fit in memory.
std::string fit_view(const Terminal& terminal, const std::vector<Compared>& all) {
  std::string text;
  for (const Compared& one : all) {
    const Prediction& predicted = one.run.predicted;
    if (fits_in_memory(predicted)) continue;
    text += "  " + wrapped(fmt::format("{} does not fit: it {}", printable(one.file),
                                       misfit_text(predicted, kRefusedChance)),
                           terminal.room(2, 98), 2);
    text += "\n";
  }
  return text;
}

std::string compare_text(const Terminal& terminal, const std::vector<Compared>& all) {
  std::string text = heading(terminal, "PREDICTED") + table_of(terminal, all, results(all));
  text += fit_view(terminal, all);
  const std::vector<Line> differing = differences(all);
  text += "\n" + heading(terminal, "WHAT DIFFERS");
  text +=
      differing.empty() ? "  nothing: the plans are equal\n" : table_of(terminal, all, differing);
  text += "\n" + heading(terminal, "TERMS", "seconds of a step");
  return text + table_of(terminal, all, terms(all));
}

Status draw(const std::string& path, const std::vector<Compared>& all) {
  std::vector<gui::ComparedPlan> plans;
  for (const Compared& one : all) {
    plans.push_back({std::filesystem::path(one.file).stem().string(), one.run.predicted});
  }
  return write_file_atomically(path, gui::svg_text(gui::comparison_picture(plans)));
}

JsonValue lines_json(const std::vector<Line>& lines) {
  JsonValue json = json_object();
  for (const Line& line : lines) json.set(line.name, json_array(line.values));
  return json;
}

JsonValue compare_json(const std::vector<Compared>& all) {
  JsonValue json = json_object({{"version", "tpsim-compare-report/1"}});
  json.set("plans", json_array(all, [&](const Compared& one) {
             JsonValue plan = run_json(one.run);
             plan.set("file", one.file);
             plan.set("model", one.named.scenario.model.name);
             plan.set("cluster", one.named.cluster);
             plan.set("profile", one.named.profile);
             plan.set("stack", one.named.stack);
             plan.set("fits", fits_in_memory(one.run.predicted));
             plan.set("tokens_per_s_per_gpu", tokens_per_gpu(one));
             plan.set("gpu_hours_per_billion_tokens", gpu_hours(one));
             if (shares_errors(all)) {
               const Seconds own = one.run.predicted.step, first = all.front().run.predicted.step;
               plan.set("p_faster_than_first", probability_faster(own, first));
               plan.set("ties_with_first",
                        &one != &all.front() && is_tie(std::min(own, first), std::max(own, first)));
             }
             JsonValue times = json_object();
             for (const StepTerm term : kStepTerms) {
               times.set(std::string(name_of(term)), time_of(one.run.predicted, term).value());
             }
             plan.set("terms_s", std::move(times));
             return plan;
           }));
  json.set("differs", lines_json(differences(all)));
  return json;
}

}  // namespace

Status run_compare(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(check_plot(arguments));
  TPSIM_TRY(const std::vector<Compared> all, load_all(arguments));
  TPSIM_TRY_STATUS(print(terminal, arguments.has(Opt::kJson) ? to_text(compare_json(all))
                                                             : compare_text(terminal, all)));
  if (arguments.has(Opt::kPlot)) TPSIM_TRY_STATUS(draw(*arguments[Opt::kPlot], all));
  for (const Compared& one : all) {
    TPSIM_TRY_STATUS(check_stated_risk(arguments, one.file, one.run.predicted));
  }
  return Ok{};
}

}  // namespace tpsim::cli
