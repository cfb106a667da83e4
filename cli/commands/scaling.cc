#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "cli/views/report_json.h"
#include "core/base/files.h"
#include "core/base/numbers.h"
#include "core/json/json_document.h"
#include "gui/draw/scaling_picture.h"
#include "plans/search/search.h"
#include "plans/search/usual_batch.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kMostSizes = 64;
constexpr std::string_view kDots = "...";

struct Size {
  std::int64_t gpus = 0;
  std::int64_t global_batch = 0;
  std::optional<PlannedRun> best;  // absent if no plan fits in memory
  std::string why_none;
  // Best values of the searched software options (SearchResult::tried) for this number of GPUs.
  PartValues parts = {};
};

// Returns the tokens per second and GPU.
double rate(const Size& size) {
  return size.best->predicted.tokens_per_s / static_cast<double>(size.gpus);
}

// Returns the first size that has a plan, which is the baseline for scaling efficiency.
const Size* reference(const std::vector<Size>& sizes) {
  const auto first = std::find_if(sizes.begin(), sizes.end(),
                                  [](const Size& size) { return size.best.has_value(); });
  return first == sizes.end() ? nullptr : &*first;
}

Status go_on(const Arguments& arguments, std::int64_t last, std::vector<std::int64_t>& counts) {
  if (counts.size() < 2) {
    return option_error(
        Opt::kGpus, fmt::format("'{}' needs two numbers before the dots", *arguments[Opt::kGpus]),
        "write 64,128,...,4096");
  }
  const std::int64_t a = counts[counts.size() - 2];
  const std::int64_t b = counts.back();
  if (b <= a || last <= b) {
    return option_error(Opt::kGpus, "the numbers must increase", "write 64,128,...,4096");
  }
  const bool multiplies = b % a == 0 && last % b == 0;
  for (std::int64_t next = b; next < last;) {
    next = multiplies ? next * (b / a) : next + (b - a);
    if (next > last || counts.size() >= kMostSizes) {
      return option_error(
          Opt::kGpus, fmt::format("{} is not in the series that starts with {} and {}", last, a, b),
          "write 64,128,...,4096");
    }
    counts.push_back(next);
  }
  return Ok{};
}

Result<Size> best_of(const NamedScenario& named, const SearchSpace& space, int threads,
                     const std::function<void(double)>& progress) {
  Size size{space.gpus, space.global_batch, {}, ""};
  const Result<SearchResult> found = search(named.scenario, space, 1, progress, threads);
  if (!found.ok()) {
    size.why_none = found.error().message;
  } else if (found->plans.empty()) {
    size.why_none = found->feasible > 0 ? "no plan is legal" : "no plan fits or is legal";
  } else {
    size.best = found->plans.front();
    if (!found->tried.empty()) size.parts = found->tried.front().parts;
  }
  return size;
}

Result<std::vector<Size>> all_sizes(const Arguments& arguments, const NamedScenario& named,
                                    const std::optional<PlanFile>& file, const Terminal& terminal) {
  ProgressBar progress(terminal, "searching");
  TPSIM_TRY(const std::vector<std::int64_t> counts, gpu_counts(arguments));
  TPSIM_TRY(const int threads, threads_of(arguments));
  Arguments first = arguments;
  first.set(Opt::kGpus, std::to_string(counts.front()));
  TPSIM_TRY(SearchSpace space, search_space(first, named.scenario, file));
  const std::int64_t batch = space.global_batch;
  constexpr std::array<std::string_view, 2> kScalings = {"strong", "weak"};
  TPSIM_TRY(const std::vector<std::size_t> chosen,
            chosen_names(arguments, Opt::kScaling, kScalings));
  TPSIM_TRY_STATUS(check_single(arguments, Opt::kScaling, chosen.size()));
  const bool weak = !chosen.empty() && chosen.front() == 1;
  std::vector<Size> sizes;
  for (const std::int64_t gpus : counts) {
    space.gpus = gpus;
    if (weak) space.global_batch = batch * gpus / counts.front();
    const auto done = static_cast<double>(sizes.size());
    const auto show = [&](double share) {
      progress.show((done + share) / static_cast<double>(counts.size()));
    };
    TPSIM_TRY(sizes.emplace_back(), best_of(named, space, threads, show));
  }
  return sizes;
}

std::string plan_text(const Size& size) {
  const std::string name = short_name(size.best->plan);
  return size.parts.empty() ? name : name + ", " + to_string(size.parts);
}

std::string scaling_text(const Terminal& terminal, const NamedScenario& named,
                         const std::vector<Size>& sizes) {
  Table table(columns_of("GPUs|sequences|step|tokens/s|per GPU|efficiency|MFU|GiB|<best plan"));
  const Size* const first = reference(sizes);
  for (const Size& size : sizes) {
    if (!size.best) {
      table.add_row({count_text(size.gpus), count_text(size.global_batch), "-", "-", "-", "-", "-",
                     "-", size.why_none});
      continue;
    }
    const Prediction& p = size.best->predicted;
    table.add_row({count_text(size.gpus), count_text(size.global_batch), time_text(p.step),
                   count_text(std::llround(p.tokens_per_s)), count_text(std::llround(rate(size))),
                   percent_text(rate(size) / rate(*first)), percent_text(p.mfu), gib_text(p.peak),
                   plan_text(size)});
  }
  const std::string note =
      fmt::format("{} on {} ({}, {}); efficiency: tokens/s per GPU relative to the first row",
                  printable(named.scenario.model.name), printable(named.cluster),
                  printable(named.profile), printable(named.stack));
  return heading(terminal, "SCALING") + "  " + wrapped(note, terminal.room(2, 98), 2) + "\n\n" +
         table.text(terminal);
}

JsonValue scaling_json(const NamedScenario& named, const std::vector<Size>& sizes) {
  const Size* const first = reference(sizes);
  JsonValue json = json_object({{"version", "tpsim-scaling-report/1"},
                                {"model", named.scenario.model.name},
                                {"cluster", named.cluster},
                                {"profile", named.profile},
                                {"stack", named.stack}});
  json.set(
      "sizes", json_array(sizes, [&](const Size& size) {
        JsonValue row = json_object({{"gpus", size.gpus}, {"global_batch", size.global_batch}});
        if (!size.best) return row.set("none", size.why_none), row;
        row.set("tokens_per_s_per_gpu", rate(size));
        row.set("efficiency", rate(size) / rate(*first));
        row.set("best", run_json(*size.best));
        if (!size.parts.empty()) row.set("parts", parts_json(size.parts));
        return row;
      }));
  return json;
}

Status draw(const Arguments& arguments, const NamedScenario& named,
            const std::vector<Size>& sizes) {
  const std::string& path = *arguments[Opt::kPlot];
  std::vector<gui::ScalingPoint> points;
  for (const Size& size : sizes) {
    if (size.best) points.push_back({size.gpus, size.best->predicted.tokens_per_s});
  }
  return write_file_atomically(
      path, gui::svg_text(gui::scaling_picture(named.scenario.model.name, named.cluster, points)));
}

}  // namespace

bool is_scaling_curve(const Arguments& arguments) {
  return arguments.has(Opt::kGpus) && arguments[Opt::kGpus]->find(',') != std::string::npos;
}

Result<std::vector<std::int64_t>> gpu_counts(const Arguments& arguments) {
  std::vector<std::int64_t> counts;
  bool dots = false;
  for (const std::string_view part : listed(*arguments[Opt::kGpus])) {
    if (part == kDots) {
      if (dots) return option_error(Opt::kGpus, "has '...' twice", "write 64,128,...,4096");
      dots = true;
      continue;
    }
    std::vector<std::int64_t> next;
    TPSIM_TRY_STATUS(append_range(Opt::kGpus, part, {}, next));
    if (next.size() != 1 || counts.size() + 1 > kMostSizes) {
      return option_error(Opt::kGpus, fmt::format("'{}' is not a number of GPUs", part),
                          "write 64,128,...,4096");
    }
    if (dots) {
      TPSIM_TRY_STATUS(go_on(arguments, next.front(), counts));
      dots = false;
    } else {
      counts.push_back(next.front());
    }
  }
  if (dots)
    return option_error(Opt::kGpus, "needs a number after the dots", "write 64,128,...,4096");
  sort_and_unite(counts);
  return counts;
}

Status run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                   const Terminal& terminal) {
  TPSIM_TRY_STATUS(refuse(arguments, {Opt::kTop, Opt::kPareto, Opt::kSave},
                          "with several --gpus, tpsim shows only the best plan for each number"));
  TPSIM_TRY(const NamedScenario named, load_scenario(arguments, file));
  TPSIM_TRY(const std::vector<Size> sizes, all_sizes(arguments, named, file, terminal));
  TPSIM_TRY_STATUS(print(terminal, arguments.has(Opt::kJson)
                                       ? to_text(scaling_json(named, sizes))
                                       : scaling_text(terminal, named, sizes)));
  if (reference(sizes) == nullptr) {
    return Error{ErrorKind::kDoesNotFit, "no plan fits on any of these numbers of GPUs",
                 row_of(Opt::kGpus).name,
                 fmt::format("tpsim plan --gpus {} shows why", sizes.back().gpus)};
  }
  return arguments.has(Opt::kPlot) ? draw(arguments, named, sizes) : Status(Ok{});
}

}  // namespace tpsim::cli
