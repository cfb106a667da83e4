#include "cli/options/plan_requests.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "cli/options/values.h"

namespace tpsim::cli {
namespace {

constexpr std::int64_t kDefaultTop = 10;
constexpr std::int64_t kMostTop = 10'000;
constexpr std::size_t kMostSizes = 64;
constexpr std::string_view kDots = "...";

Status add_series(const Arguments& arguments, std::int64_t last,
                  std::vector<std::int64_t>& counts) {
  if (counts.size() < 2) {
    return option_error("--gpus",
                        fmt::format("'{}' needs two numbers before the dots", *arguments["--gpus"]),
                        "write 64,128,...,4096");
  }
  const std::int64_t a = counts[counts.size() - 2];
  const std::int64_t b = counts.back();
  if (b <= a || last <= b) {
    return option_error("--gpus", "the numbers must increase", "write 64,128,...,4096");
  }
  const bool multiplies = b % a == 0 && last % b == 0;
  for (std::int64_t next = b; next < last;) {
    next = multiplies ? next * (b / a) : next + (b - a);
    if (next > last || counts.size() >= kMostSizes) {
      return option_error(
          "--gpus", fmt::format("{} is not in the series that starts with {} and {}", last, a, b),
          "write 64,128,...,4096");
    }
    counts.push_back(next);
  }
  return Ok{};
}

}  // namespace

Result<PlanRequest> plan_request(const Arguments& arguments, const std::optional<PlanFile>& file) {
  PlanRequest request;
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  TPSIM_TRY(request.search, search_request(arguments));
  TPSIM_TRY(request.search.within, time_of(arguments, "--within"));
  TPSIM_TRY(const std::int64_t top, integer_of(arguments, "--top", kDefaultTop, {1, kMostTop}));
  request.top = static_cast<int>(top);
  TPSIM_TRY(request.group, choice_of(arguments, "--group", request.group));
  request.is_front = arguments.has("--pareto");
  request.is_drawn = arguments.has("--plot");
  return request;
}

Result<SimulateRequest> simulate_request(const Arguments& arguments,
                                         const std::optional<PlanFile>& file) {
  SimulateRequest request;
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  TPSIM_TRY(request.settings, single_settings(arguments));
  return request;
}

Result<ScalingRequest> scaling_request(const Arguments& arguments,
                                       const std::optional<PlanFile>& file) {
  ScalingRequest request;
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  TPSIM_TRY(request.gpus, gpu_counts(arguments));
  TPSIM_TRY(request.search, sizes_request(arguments));
  constexpr std::array<std::string_view, 2> kScalings = {"strong", "weak"};
  TPSIM_TRY(const std::vector<std::size_t> chosen, chosen_names(arguments, "--scaling", kScalings));
  TPSIM_TRY_STATUS(check_single(arguments, "--scaling", chosen.size()));
  request.is_weak = !chosen.empty() && chosen.front() == 1;
  return request;
}

bool is_scaling_curve(const Arguments& arguments) {
  return arguments.has("--gpus") && arguments["--gpus"]->find(',') != std::string::npos;
}

Result<std::vector<std::int64_t>> gpu_counts(const Arguments& arguments) {
  std::vector<std::int64_t> counts;
  bool dots = false;
  for (const OptionValue& value : values_of(arguments, "--gpus")) {
    if (value == OptionValue(std::string(kDots))) {
      if (dots) return option_error("--gpus", "has '...' twice", "write 64,128,...,4096");
      dots = true;
      continue;
    }
    std::vector<std::int64_t> next;
    TPSIM_TRY_STATUS(append_integers("--gpus", value, {}, next));
    if (next.size() != 1 || counts.size() + 1 > kMostSizes) {
      return option_error("--gpus", fmt::format("'{}' is not a number of GPUs", text_of(value)),
                          "write 64,128,...,4096");
    }
    if (dots) {
      TPSIM_TRY_STATUS(add_series(arguments, next.front(), counts));
      dots = false;
    } else {
      counts.push_back(next.front());
    }
  }
  if (dots) return option_error("--gpus", "needs a number after the dots", "write 64,128,...,4096");
  sort_and_unite(counts);
  return counts;
}

}  // namespace tpsim::cli
