// Reads tunable_constants.txt, which describes the lines.
#include "evidence/calibration/tunable_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/base/units.h"
#include "core/json/key_meanings.h"
#include "core/machine/cluster_json.h"
#include "core/software/stack_json.h"

namespace tpsim {

extern const std::span<const unsigned char> kTunableConstants;  // tunable_constants.txt

namespace {

constexpr double kLeastShare = 0.01;  // least share and factor of a fit
constexpr double kLongestTime = 10;   // seconds

std::int64_t passes_of_micro_batches(const Plan& plan) { return 2 * micro_batches(plan); }

// Returns the value with this name; the first if the name is empty.
template <HasEnumNames E>
E value_named(std::string_view name) {
  for (const E value : all_of<E>()) {
    if (name.empty() || name_of(value) == name) return value;
  }
  throw BugError(fmt::format("tunable_constants.txt: unknown word {}", name));
}

TunableConstant constant_in(const TableBlock& block) {
  TunableConstant constant{.key = block.name,
                           .owner = value_named<ConstantOwner>(block.kind),
                           .group = value_named<ConstantGroup>(block.rest_of("group")),
                           .spread = parse_number<double>(block.rest_of("spread")).value(),
                           .coordinate = value_named<Coordinate>(block.rest_of("coordinate"))};
  const std::string_view times = block.rest_of("times");
  if (times == "micro_batches") constant.times = micro_batches;
  if (times == "passes") constant.times = passes_of_micro_batches;
  std::string_view others = block.rest_of("with");
  for (std::string_view& other : constant.scaled_too) other = cut_off(others, " ");
  return constant;
}

FoundNumber number_at(ConstantOwner owner, StackSpec& stack, ClusterSpec& cluster,
                      std::string_view key) {
  const auto found =
      owner == ConstantOwner::kStack ? number_at(stack, key) : number_at(cluster, key);
  TPSIM_CHECK(found.has_value(), fmt::format("{} is a number of the file", key));
  return *found;
}

// Copies of the values of a scenario, since numbers are found in specs that may change.
struct OwnedNumber {
  StackSpec stack;
  ClusterSpec cluster;
  FoundNumber number;

  explicit OwnedNumber(const TunableConstant& constant, StackSpec of_stack = {},
                       ClusterSpec of_cluster = {})
      : stack(std::move(of_stack)),
        cluster(std::move(of_cluster)),
        number(number_at(constant.owner, stack, cluster, constant.key)) {}
  OwnedNumber(const OwnedNumber&) = delete;
  OwnedNumber& operator=(const OwnedNumber&) = delete;
};

double least_of(const FoundNumber& number) {
  return number.is_time() ? 0 : std::max(kLeastShare, number.range.least);
}
double most_of(const FoundNumber& number) {
  return number.is_time() ? kLongestTime : number.range.most;
}

void scale(const FoundNumber& number, double factor) {
  const double value = number.value();
  if (number.is_time()) return number.set(value * factor);
  number.set(std::clamp(value * factor, std::min(least_of(number), value), most_of(number)));
}

}  // namespace

std::span<const TunableConstant> tunable_constants() {
  static const std::vector<TunableConstant> kConstants = [] {
    std::vector<TunableConstant> constants;
    for (const TableBlock& block : read_table(kTunableConstants)) {
      constants.push_back(constant_in(block));
    }
    return constants;
  }();
  return kConstants;
}

double TunableConstant::value(const Scenario& scenario) const {
  return OwnedNumber(*this, scenario.stack, scenario.cluster).number.value();
}

void TunableConstant::move(Scenario& scenario, double moved) const {
  const FoundNumber number = number_at(owner, scenario.stack, scenario.cluster, key);
  const double now = number.value();
  switch (coordinate) {
    case Coordinate::kFactor: scale(number, std::exp(moved)); break;
    case Coordinate::kSum: number.set(std::clamp(now + moved, 0.0, most_of(number))); break;
    case Coordinate::kExcess:
      number.set(std::min(most_of(number), 1 + (now - 1) * std::exp(moved)));
      break;
  }
  for (const std::string_view other : scaled_too) {
    if (other.empty()) continue;
    scale(number_at(owner, scenario.stack, scenario.cluster, other), std::exp(moved));
  }
}

std::string TunableConstant::text(double value) const {
  return OwnedNumber(*this).number.is_time() ? to_string(Seconds(value))
                                             : fmt::format("{:.3g}", value);
}

std::string TunableConstant::meaning() const {
  std::string text(meaning_of(OwnedNumber(*this).number.meaning));
  if (text.ends_with(']')) text.erase(text.rfind(" ["));  // the default of files
  return text;
}

CoordinateRange range_of(const TunableConstant& constant, const Scenario& scenario) {
  constexpr CoordinateRange kAny = {-10, 10};
  const OwnedNumber owned(constant, scenario.stack, scenario.cluster);
  const double value = owned.number.value(), most = most_of(owned.number);
  if (constant.is_sum()) return {-value, most - value};
  // An excess is fitted as a logarithm, which needs no lower limit.
  if (constant.coordinate == Coordinate::kExcess || value <= 0) return kAny;
  return {std::min(0.0, std::log(least_of(owned.number) / value)),
          std::max(0.0, std::log(most / value))};
}

}  // namespace tpsim
