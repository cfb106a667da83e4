#include "core/base/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tpsim {

TimeScale time_scale(Seconds largest) {
  constexpr std::array kScales = {TimeScale{"s", 1.0, 0}, TimeScale{"ms", 1e3, 0},
                                  TimeScale{"us", 1e6, 0}};
  const double seconds = std::abs(largest.value());
  if (seconds == 0) return kScales[0];
  TimeScale scale = seconds >= 1 ? kScales[0] : seconds >= 1e-3 ? kScales[1] : kScales[2];
  const double shown = seconds * scale.factor;
  scale.decimals = shown >= 1000 ? 0 : shown >= 100 ? 1 : shown >= 10 ? 2 : 3;
  return scale;
}

namespace {

// Returns a number with a comma between groups of three digits: "2,119.5".
std::string with_groups(std::string number) {
  const std::size_t first = number.starts_with('-') ? 1 : 0;
  std::size_t at = std::min(number.find('.'), number.size());
  while (at > first + 3) number.insert(at -= 3, 1, ',');
  return number;
}

}  // namespace

std::string scaled_text(Seconds time, const TimeScale& scale) {
  return with_groups(fmt::format("{:.{}f}", time.value() * scale.factor, scale.decimals));
}

std::string time_text(Seconds time) {
  const TimeScale scale = time_scale(time);
  return fmt::format("{} {}", scaled_text(time, scale), scale.unit);
}

std::string gib_text(Bytes bytes, int decimals) {
  return with_groups(fmt::format("{:.{}f}", bytes.value() / kGiB, decimals));
}

int gib_decimals(Bytes largest) {
  return largest >= Bytes(10 * kGiB) ? 1 : largest >= Bytes(kGiB) ? 2 : 3;
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string chance_text(double probability) {
  if (probability < 0.001) return "< 0.1 %";
  if (probability > 0.999) return "> 99.9 %";
  return percent_text(probability);
}

std::string count_text(std::int64_t count) { return with_groups(std::to_string(count)); }

std::string counted_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : "s");
}

std::string gpus_text(std::int64_t gpus) { return counted_text(gpus, "GPU"); }

std::string parameters_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  if (count >= 1e12) return fmt::format("{:.3f} T", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.1f} B", count / 1e9);
  return fmt::format("{:.1f} M", count / 1e6);
}

std::string layers_text(std::span<const std::int64_t> layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    text += text.empty() ? "" : ", ";
    text += end - i > 1 ? fmt::format("{} x {}", end - i, layers[i]) : std::to_string(layers[i]);
    i = end;
  }
  return text;
}

}  // namespace tpsim
