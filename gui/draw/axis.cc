#include "gui/draw/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tpsim::gui {
namespace {

// Returns the smallest 1, 2 or 5 times a power of ten that is at least `rough`.
double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int decimals_of(double step) {
  return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
}

std::vector<Tick> linear_ticks(const AxisScale& scale, int most_ticks) {
  std::vector<Tick> result;
  const double range = scale.most - scale.least;
  if (!(range > 0)) return result;
  const double step = round_step(range / std::max(1, most_ticks));
  const int decimals = decimals_of(step);
  for (double i = std::ceil(scale.least / step - 1e-9) + 0.0; i * step <= scale.most + 1e-9 * range;
       i += 1) {
    const double value = i == 0 ? 0.0 : i * step;  // not -0.0
    result.push_back({value, fmt::format("{:.{}f}", value, decimals)});
  }
  return result;
}

std::vector<Tick> logarithmic_ticks(const AxisScale& scale, int most_ticks) {
  std::vector<Tick> result;
  for (double power = std::pow(10.0, std::floor(std::log10(scale.least))); power <= scale.most;
       power *= 10) {
    for (const double factor : {1.0, 2.0, 3.0, 5.0}) {
      const double value = factor * power;
      if (value < scale.least * (1 - 1e-9) || value > scale.most * (1 + 1e-9)) continue;
      result.push_back({value, fmt::format("{:.{}f}", value, decimals_of(power))});
    }
  }
  while (static_cast<int>(result.size()) > most_ticks && result.size() > 2) {
    std::vector<Tick> half;
    for (std::size_t i = 0; i < result.size(); i += 2) half.push_back(result[i]);
    result = half;
  }
  return result;
}

}  // namespace

double AxisScale::share(double value) const {
  if (logarithmic) return std::log(value / least) / std::log(most / least);
  return (value - least) / (most - least);
}

std::vector<Tick> ticks(const AxisScale& scale, int most_ticks) {
  return scale.logarithmic ? logarithmic_ticks(scale, most_ticks) : linear_ticks(scale, most_ticks);
}

AxisScale scale_around(double least, double most) {
  if (!(most > least)) return {least * 0.9, least * 1.1 + 1e-12, false};
  if (least > 0 && most / least > 3) return {least / 1.08, most * 1.08, true};
  const double air = 0.06 * (most - least);
  return {least - air, most + air, false};
}

std::string time_tick(double seconds, double step, double largest) {
  const double size = std::max(std::abs(largest), step);
  const double factor = size >= 1 ? 1 : size >= 1e-3 ? 1e3 : 1e6;
  const char* unit = size >= 1 ? "s" : size >= 1e-3 ? "ms" : "us";
  return fmt::format("{:.{}f} {}", seconds * factor, decimals_of(step * factor), unit);
}

}  // namespace tpsim::gui
