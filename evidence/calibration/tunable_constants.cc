#include "evidence/calibration/tunable_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.h"

namespace tpsim {
namespace {

std::string time_of_host(double seconds) { return to_string(Seconds(seconds)); }
std::string share_text(double share) { return fmt::format("{:.3g}", share); }

void scale(Seconds& time, double coordinate) { time *= std::exp(coordinate); }
void scale_share(double& share, double coordinate) {
  constexpr double kLeast = 0.01;
  share = std::clamp(share * std::exp(coordinate), std::min(kLeast, share), 1.0);
}

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

using HostTime = Seconds HostCost::*;
template <HostTime time>
double seconds_of(const Scenario& scenario) {
  return (scenario.stack.host.*time).value();
}
template <HostTime... times>
void scale_host(Scenario& scenario, double coordinate) {
  (scale(scenario.stack.host.*times, coordinate), ...);
}
template <HostTime time>
void add_to_host(Scenario& scenario, double coordinate) {
  Seconds& value = scenario.stack.host.*time;
  value = std::max(Seconds(), value + Seconds(coordinate));
}

// A host time that is fitted as a factor. The factor also scales the host times `others`.
template <HostTime time, HostTime... others>
constexpr TunableConstant host_factor(std::string_view key, std::string_view meaning,
                                      double spread = kHostSpread) {
  return {key, meaning, ConstantOwner::kStack, ConstantGroup::kHost,        spread,      false,
          0,   10,      seconds_of<time>,      scale_host<time, others...>, time_of_host};
}
// A host time that is fitted as an additive change, because it may be 0.
template <HostTime time>
constexpr TunableConstant host_sum(std::string_view key, std::string_view meaning, double spread,
                                   std::int64_t (*times)(const Plan&) = nullptr) {
  return {key, meaning, ConstantOwner::kStack, ConstantGroup::kHost, spread,       true,
          0,   10,      seconds_of<time>,      add_to_host<time>,    time_of_host, times};
}

constexpr std::array kConstants = {
    TunableConstant{"unmodelled", "overhead not explained by the other terms",
                    ConstantOwner::kStack, ConstantGroup::kWhole, kWholeSpread, true, 0, 1,
                    [](const Scenario& s) { return s.stack.uncalibrated_overhead; },
                    [](Scenario& s, double x) {
                      s.stack.uncalibrated_overhead =
                          std::clamp(s.stack.uncalibrated_overhead + x, 0.0, 1.0);
                    },
                    share_text},
    TunableConstant{"eager_traffic", "time of non-GEMM kernels, relative to fused ones",
                    ConstantOwner::kStack, ConstantGroup::kKernels, kKernelSpread, false, 1, 10,
                    [](const Scenario& s) { return s.stack.eager_traffic; },
                    [](Scenario& s, double x) {
                      s.stack.eager_traffic =
                          std::clamp(s.stack.eager_traffic * std::exp(x), 1.0, 10.0);
                    },
                    share_text},
    TunableConstant{"flash_speed", "speed of fused attention relative to the profile",
                    ConstantOwner::kStack, ConstantGroup::kKernels, kAttentionSpread, false, 0.01,
                    10, [](const Scenario& s) { return s.stack.flash_speed; },
                    [](Scenario& s, double x) {
                      s.stack.flash_speed =
                          std::clamp(s.stack.flash_speed * std::exp(x), 0.01, 10.0);
                    },
                    share_text},
    host_factor<&HostCost::per_op>("host.per_op", "host time per kernel launch"),
    host_factor<&HostCost::per_block_op>("host.per_block_op", "host time per kernel of a block"),
    host_factor<&HostCost::per_collective>("host.per_collective", "host time per collective"),
    host_factor<&HostCost::per_block_forward, &HostCost::per_block_backward>(
        "host.per_block_forward", "host time per layer, forward (backward in proportion)"),
    host_factor<&HostCost::per_routing_forward, &HostCost::per_routing_backward,
                &HostCost::per_expert_forward, &HostCost::per_expert_backward>(
        "host.per_routing_forward", "host time per router, forward (backward in proportion)"),
    host_sum<&HostCost::per_micro_batch>("host.per_micro_batch", "host time per micro-batch",
                                         kSecondsPerMicroBatch, micro_batches),
    host_sum<&HostCost::per_transfer>("host.per_transfer", "overhead of a send between stages",
                                      kSecondsPerTransfer, passes_of_micro_batches),
    host_sum<&HostCost::per_step>("host.per_step", "host time per step", kSecondsPerStep),
    host_factor<&HostCost::blocking_op>("host.blocking_op", "blocking launches: time per kernel"),
    host_factor<&HostCost::blocking_collective>("host.blocking_collective",
                                                "blocking launches: time per collective", 1.0),
    TunableConstant{"overlap_slowdown", "slowdown of compute overlapped with a collective",
                    ConstantOwner::kStack, ConstantGroup::kKernels, 0.4, false, 1, 10,
                    [](const Scenario& s) { return s.stack.overlap_slowdown; },
                    [](Scenario& s, double x) {
                      const double more = s.stack.overlap_slowdown - 1;
                      s.stack.overlap_slowdown = std::min(10.0, 1 + more * std::exp(x));
                    },
                    share_text},
    TunableConstant{"tensor_overlap", "share of tensor-parallel collectives hidden by userbuffers",
                    ConstantOwner::kStack, ConstantGroup::kKernels, 0.5, false, 0.01, 1,
                    [](const Scenario& s) { return s.stack.tp_overlap; },
                    [](Scenario& s, double x) { scale_share(s.stack.tp_overlap, x); }, share_text},
    TunableConstant{"rank_jitter", "relative spread of a rank's step time", ConstantOwner::kStack,
                    ConstantGroup::kWhole, 0.7, false, 1e-4, 1,
                    [](const Scenario& s) { return s.stack.rank_jitter; },
                    [](Scenario& s, double x) { scale_share(s.stack.rank_jitter, x); }, share_text},
    TunableConstant{"gpu_clock", "sustained GPU clock of the site relative to the profile",
                    ConstantOwner::kCluster, ConstantGroup::kWhole, kClockSpread, false, 0.3, 1.3,
                    [](const Scenario& s) { return s.cluster.gpu_clock; },
                    [](Scenario& s, double x) {
                      s.cluster.gpu_clock = std::clamp(s.cluster.gpu_clock * std::exp(x), 0.3, 1.3);
                    },
                    share_text},
    TunableConstant{"intra_node.efficiency", "efficiency of the links inside a node",
                    ConstantOwner::kCluster, ConstantGroup::kNetwork, kLinkSpread, false, 0.01, 1,
                    [](const Scenario& s) { return s.cluster.intra_node.efficiency; },
                    [](Scenario& s, double x) { scale_share(s.cluster.intra_node.efficiency, x); },
                    share_text},
    TunableConstant{"inter_node.efficiency", "efficiency of the links between nodes",
                    ConstantOwner::kCluster, ConstantGroup::kNetwork, kLinkSpread, false, 0.01, 1,
                    [](const Scenario& s) { return s.cluster.inter_node.efficiency; },
                    [](Scenario& s, double x) { scale_share(s.cluster.inter_node.efficiency, x); },
                    share_text},
    TunableConstant{"inter_node.latency",
                    "latency of a hop between nodes (inside a node in proportion)",
                    ConstantOwner::kCluster, ConstantGroup::kNetwork, kLatencySpread, false, 0, 10,
                    [](const Scenario& s) { return s.cluster.inter_node.latency.value(); },
                    [](Scenario& s, double x) {
                      scale(s.cluster.inter_node.latency, x);
                      scale(s.cluster.intra_node.latency, x);
                    },
                    time_of_host},
    TunableConstant{"transfer_share", "speed of P2P between nodes relative to collectives",
                    ConstantOwner::kCluster, ConstantGroup::kNetwork, kTransferSpread, false, 0.05,
                    20, [](const Scenario& s) { return s.cluster.p2p_efficiency; },
                    [](Scenario& s, double x) {
                      s.cluster.p2p_efficiency =
                          std::clamp(s.cluster.p2p_efficiency * std::exp(x), 0.05, 20.0);
                    },
                    share_text},
    TunableConstant{
        "several_ranks_share", "NIC bandwidth left when several rings share a NIC",
        ConstantOwner::kCluster, ConstantGroup::kNetwork, kLinkSpread, false, 0.01, 1,
        [](const Scenario& s) { return s.cluster.nic_collision_efficiency; },
        [](Scenario& s, double x) { scale_share(s.cluster.nic_collision_efficiency, x); },
        share_text},
};

}  // namespace

std::string_view name_of(ConstantOwner owner) {
  return owner == ConstantOwner::kStack ? "stack" : "cluster";
}

std::span<const TunableConstant> tunable_constants() { return kConstants; }

CoordinateRange range_of(const TunableConstant& constant, const Scenario& scenario) {
  const double value = constant.value(scenario);
  if (constant.is_sum) return {constant.least - value, constant.most - value};
  // overlap_slowdown is at least 1. Its excess over 1 is fitted as a logarithm, which needs no
  // lower limit.
  if (constant.key == "overlap_slowdown" || value <= 0) return {-10, 10};
  return {std::min(0.0, std::log(constant.least / value)),
          std::max(0.0, std::log(constant.most / value))};
}

}  // namespace tpsim
