#include "evidence/calibration/tunable_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/units.h"
#include "core/json/key_meanings.h"
#include "core/machine/cluster_json.h"
#include "core/software/stack_json.h"

namespace tpsim {
namespace {

// Sends per step and stage: one activation per forward and one gradient per backward of each
// micro-batch.
std::int64_t passes_of_micro_batches(const Plan& plan) { return 2 * micro_batches(plan); }

// Prior spreads of the catalogue's values, relative unless they are in seconds. Source: spreads of
// constants fitted to published tables (tools/refit_constants.cc, docs/accuracy.md). Host times
// vary by half or more, links by a third, kernels by a sixth to a quarter.
constexpr double kHostSpread = 0.5;
constexpr double kLinkSpread = 0.35;
constexpr double kLatencySpread = 1.0;
constexpr double kTransferSpread = 1.0;  // a P2P send uses one stream, a collective many
constexpr double kKernelSpread = 0.25;
constexpr double kAttentionSpread = 0.15;
constexpr double kClockSpread = 0.06;
constexpr double kWholeSpread = 0.08;
// Prior spreads in seconds. A pipeline engine may add tens of milliseconds per micro-batch, because
// it loads data, checks shapes and waits for each call.
constexpr double kSecondsPerMicroBatch = 0.02;
constexpr double kSecondsPerTransfer = 0.01;
constexpr double kSecondsPerStep = 0.2;  // logging, data loading, metrics of all ranks

constexpr double kLeastShare = 0.01;  // least share and factor of a fit
constexpr double kLongestTime = 10;   // seconds

constexpr auto kStack = ConstantOwner::kStack;
constexpr auto kCluster = ConstantOwner::kCluster;
constexpr auto kHost = ConstantGroup::kHost;
constexpr auto kKernels = ConstantGroup::kKernels;
constexpr auto kNetwork = ConstantGroup::kNetwork;
constexpr auto kWhole = ConstantGroup::kWhole;
constexpr auto kFactor = Coordinate::kFactor;
constexpr auto kSum = Coordinate::kSum;

constexpr std::array kConstants = {
    TunableConstant{"uncalibrated_overhead", kStack, kWhole, kWholeSpread, kSum},
    TunableConstant{"eager_traffic", kStack, kKernels, kKernelSpread},
    TunableConstant{"flash_speed", kStack, kKernels, kAttentionSpread},
    TunableConstant{"host.per_op", kStack, kHost, kHostSpread},
    TunableConstant{"host.per_block_op", kStack, kHost, kHostSpread},
    TunableConstant{"host.per_collective", kStack, kHost, kHostSpread},
    TunableConstant{"host.per_block_forward",
                    kStack,
                    kHost,
                    kHostSpread,
                    kFactor,
                    nullptr,
                    {"host.per_block_backward"}},
    TunableConstant{
        "host.per_routing_forward",
        kStack,
        kHost,
        kHostSpread,
        kFactor,
        nullptr,
        {"host.per_routing_backward", "host.per_expert_forward", "host.per_expert_backward"}},
    TunableConstant{"host.per_micro_batch", kStack, kHost, kSecondsPerMicroBatch, kSum,
                    micro_batches},
    TunableConstant{"host.per_transfer", kStack, kHost, kSecondsPerTransfer, kSum,
                    passes_of_micro_batches},
    TunableConstant{"host.per_step", kStack, kHost, kSecondsPerStep, kSum},
    TunableConstant{"host.blocking_op", kStack, kHost, kHostSpread},
    TunableConstant{"host.blocking_collective", kStack, kHost, 1.0},
    TunableConstant{"overlap_slowdown", kStack, kKernels, 0.4, Coordinate::kExcess},
    TunableConstant{"tensor_overlap", kStack, kKernels, 0.5},
    TunableConstant{"rank_jitter", kStack, kWhole, 0.7},
    TunableConstant{"gpu_clock", kCluster, kWhole, kClockSpread},
    TunableConstant{"intra_node.efficiency", kCluster, kNetwork, kLinkSpread},
    TunableConstant{"inter_node.efficiency", kCluster, kNetwork, kLinkSpread},
    TunableConstant{"inter_node.latency",
                    kCluster,
                    kNetwork,
                    kLatencySpread,
                    kFactor,
                    nullptr,
                    {"intra_node.latency"}},
    TunableConstant{"p2p_efficiency", kCluster, kNetwork, kTransferSpread},
    TunableConstant{"nic_collision_efficiency", kCluster, kNetwork, kLinkSpread},
};

FoundNumber number_at(ConstantOwner owner, StackSpec& stack, ClusterSpec& cluster,
                      std::string_view key) {
  const auto found = owner == kStack ? number_at(stack, key) : number_at(cluster, key);
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

std::string_view name_of(ConstantOwner owner) { return owner == kStack ? "stack" : "cluster"; }

std::span<const TunableConstant> tunable_constants() { return kConstants; }

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
