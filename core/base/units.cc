#include "core/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

// Largest first: formatting takes the first unit that does not exceed the value.
constexpr std::array kByteUnits = {Unit{"TiB", kGiB * 1024}, Unit{"GiB", kGiB}, Unit{"MiB", kMiB},
                                   Unit{"KiB", kKiB},        Unit{"B", 1.0},    Unit{"TB", 1e12},
                                   Unit{"GB", 1e9},          Unit{"MB", 1e6},   Unit{"kB", 1e3}};
constexpr std::array kSecondUnits = {Unit{"s", 1.0}, Unit{"ms", 1e-3}, Unit{"us", 1e-6},
                                     Unit{"ns", 1e-9}};
constexpr std::array kBandwidthUnits = {
    Unit{"TB/s", 1e12},     Unit{"GB/s", 1e9},     Unit{"MB/s", 1e6},    Unit{"B/s", 1.0},
    Unit{"Tb/s", 1e12 / 8}, Unit{"Gb/s", 1e9 / 8}, Unit{"Mb/s", 1e6 / 8}};
constexpr std::array kFlopUnits = {Unit{"PFLOP/s", 1e15}, Unit{"TFLOP/s", 1e12},
                                   Unit{"GFLOP/s", 1e9}, Unit{"MFLOP/s", 1e6}, Unit{"FLOP/s", 1.0}};

std::string format_scaled(double value, std::span<const Unit> units) {
  const Unit* unit = &units.back();
  for (const Unit& candidate : units) {
    if (std::abs(value) >= candidate.scale) {
      unit = &candidate;
      break;
    }
  }
  const double scaled = value / unit->scale;
  const int decimals = std::abs(scaled) >= 100 ? 0 : std::abs(scaled) >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", scaled, decimals, unit->name);
}

// Returns the shortest text that parses back to exactly `value`, among the units in which the
// number is at least `least`. Empty if there is none.
std::string exact_text(double value, std::span<const Unit> units, double least) {
  std::string shortest;
  for (const Unit& unit : units) {
    const double scaled = value / unit.scale;
    if (scaled < least || scaled * unit.scale != value) continue;
    std::string text = fmt::format("{} {}", scaled, unit.name);
    if (shortest.empty() || text.size() < shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

// Prefers "300 GB/s" to "0.3 TB/s". The base unit always parses back exactly.
std::string exact_text(double value, std::span<const Unit> units) {
  TPSIM_CHECK(std::isfinite(value) && value >= 0, "files hold finite quantities only");
  const std::string text = exact_text(value, units, 1.0);
  return text.empty() ? exact_text(value, units, 0.0) : text;
}

Result<double> parse_scaled(std::string_view text, std::span<const Unit> units, const char* what) {
  // All units are listed, so that the message suffices to correct the file.
  const std::string known = joined_text(units, ", ", [](const Unit& unit) { return unit.name; });
  const auto error = [&](const std::string& why) {
    return bad_input(fmt::format("'{}' is not a valid {}: {}", text, what, why), "",
                     "write a number and one of the units " + known);
  };
  const auto leading = leading_number(text);
  if (!leading) return error("it does not start with a number");
  const double number = leading->value;
  std::string_view rest = text.substr(leading->length);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (!std::isfinite(number) || number < 0) return error("the number must be finite and >= 0");
  for (const Unit& unit : units) {
    if (rest != unit.name) continue;
    const double value = number * unit.scale;
    // A value beyond that of any machine is a typo.
    if (value > 1e24) return error("it is too large");
    if (value > 0 && value < 1e-24) return error("it is too small");
    return value;
  }
  return error(rest.empty() ? "the unit is missing" : fmt::format("unknown unit '{}'", rest));
}

template <class Q>
Result<Q> parse_quantity(std::string_view text, std::span<const Unit> units, const char* what) {
  TPSIM_TRY(const double value, parse_scaled(text, units, what));
  return Q(value);
}

}  // namespace

Picoseconds to_picoseconds(Seconds t) {
  constexpr double kMost = 9.2e6;  // seconds
  TPSIM_CHECK(std::abs(t.value()) < kMost, "the time is beyond the range of Picoseconds");
  return std::llround(t.value() * 1e12);
}
Seconds to_seconds(Picoseconds t) { return Seconds(static_cast<double>(t) * 1e-12); }

std::string to_string(Bytes q) { return format_scaled(q.value(), std::span(kByteUnits).first(5)); }
std::string to_string(Seconds q) { return format_scaled(q.value(), kSecondUnits); }
std::string to_string(BytesPerSecond q) {
  return format_scaled(q.value(), std::span(kBandwidthUnits).first(4));
}
std::string to_string(FlopsPerSecond q) { return format_scaled(q.value(), kFlopUnits); }

std::string to_exact_string(Bytes q) { return exact_text(q.value(), kByteUnits); }
std::string to_exact_string(Seconds q) { return exact_text(q.value(), kSecondUnits); }
std::string to_exact_string(BytesPerSecond q) {
  return exact_text(q.value(), std::span(kBandwidthUnits).first(4));
}
std::string to_exact_string(FlopsPerSecond q) { return exact_text(q.value(), kFlopUnits); }

Result<Bytes> parse_bytes(std::string_view text) {
  return parse_quantity<Bytes>(text, kByteUnits, "amount of bytes");
}
Result<Seconds> parse_seconds(std::string_view text) {
  return parse_quantity<Seconds>(text, kSecondUnits, "time");
}
Result<BytesPerSecond> parse_bandwidth(std::string_view text) {
  return parse_quantity<BytesPerSecond>(text, kBandwidthUnits, "bandwidth");
}
Result<FlopsPerSecond> parse_flops_rate(std::string_view text) {
  return parse_quantity<FlopsPerSecond>(text, kFlopUnits, "rate of FLOPs");
}

}  // namespace tpsim
