#include "cli/assumed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/inputs.h"
#include "cli/table.h"
#include "core/catalogue.h"
#include "sim/normal.h"
#include "sim/predict.h"
#include "sim/simulate.h"

namespace tpsim::cli {
namespace {

// The step on another machine or with other software; nothing where it cannot be predicted there.
std::optional<Seconds> step_with(Scenario scenario, const Plan& plan) {
  LayerPricer pricer(scenario);
  const Result<Prediction> predicted = predict(pricer, plan);
  if (!predicted.ok()) return std::nullopt;
  return predicted->step;
}

struct Candidates {
  std::int64_t others = 0;
  double slower = 0, faster = 0;  // squares of logarithms of their steps over the assumed one

  void add(std::optional<Seconds> step, Seconds assumed) {
    if (!step) return;
    const double away = std::log(*step / assumed);
    (away > 0 ? slower : faster) += away * away;
    ++others;
  }
  // What is assumed is one of them.
  double spread(double squares) const {
    return std::sqrt(squares / static_cast<double>(others + 1));
  }
};

Result<Candidates> other_software(const Catalogue& catalogue, const NamedScenario& named,
                                  const PlannedRun& run) {
  Candidates found;
  for (const std::string& name : catalogue.list(CatalogueKind::kStacks)) {
    TPSIM_TRY(StackSpec stack, catalogue.load_stack(name));
    // What nobody calls by a name is a stand-in for this program or for one table's rows.
    if (name == named.stack || stack.known_as.empty()) continue;
    Scenario other = named.scenario;
    if (!limit_against(stack, other.model, run.plan).reason.empty()) continue;
    other.stack = std::move(stack);
    found.add(step_with(std::move(other), run.plan), run.predicted.step);
  }
  return found;
}

Result<Candidates> other_networks(const Catalogue& catalogue, const NamedScenario& named,
                                  const PlannedRun& run) {
  Candidates found;
  const ClusterSpec& taken = named.scenario.cluster;
  for (const std::string& name : catalogue.list(CatalogueKind::kClusters)) {
    TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(name));
    if (name == named.cluster || cluster.profile != taken.profile) continue;
    if (cluster.nodes == 1 || cluster.gpus_per_node != taken.gpus_per_node) continue;
    Scenario other = named.scenario;
    other.cluster.inter_node = cluster.inter_node;
    other.cluster.nics_per_node = cluster.nics_per_node;
    found.add(step_with(std::move(other), run.plan), run.predicted.step);
  }
  return found;
}

double half_width(double own, double squares) {
  return std::exp(std::sqrt(own * own + kHalfOf90 * kHalfOf90 * squares)) - 1;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

Result<Assumed> assumed_of(const NamedScenario& named, const PlannedRun& run) {
  const Scenario& scenario = named.scenario;
  Assumed assumed;
  if (!named.stack_is_default && !named.cluster_is_default) return assumed;
  const Result<Catalogue> opened = Catalogue::open();
  if (!opened.ok()) return assumed;  // then nothing was assumed from it
  const Catalogue& catalogue = *opened;
  const auto add = [&](std::string what, std::string taken, std::string option,
                       const Candidates& found) {
    if (found.others == 0) return;
    assumed.open.push_back({std::move(what), std::move(taken), std::move(option), found.others,
                            found.spread(found.slower), found.spread(found.faster), 0});
  };
  if (named.stack_is_default) {
    TPSIM_TRY(const Candidates others, other_software(catalogue, named, run));
    add("software", scenario.stack.name, std::string(row_of(Opt::kStack).name), others);
  }
  const bool spans_nodes = gpu_count(run.plan) > scenario.cluster.gpus_per_node;
  if (named.cluster_is_default && named.node_gbps == 0 && spans_nodes) {
    TPSIM_TRY(const Candidates others, other_networks(catalogue, named, run));
    add("network", "of " + scenario.cluster.name, std::string(row_of(Opt::kNodeGbps).name), others);
  }
  const double own = std::log(run.predicted.step_high / run.predicted.step);
  double all = 0;
  for (const OpenChoice& one : assumed.open) all += one.slower * one.slower;
  for (OpenChoice& one : assumed.open) {
    one.half_width_if_stated = half_width(own, all - one.slower * one.slower);
  }
  assumed.half_width_all_stated = half_width(own, 0);
  assumed.half_width_all_open = half_width(own, all);
  std::stable_sort(assumed.open.begin(), assumed.open.end(),
                   [](const OpenChoice& a, const OpenChoice& b) { return a.slower > b.slower; });
  return assumed;
}

}  // namespace

std::set<Setting> settings_left(const Arguments& arguments, bool has_file) {
  std::set<Setting> left;
  if (has_file) return left;
  const bool searches = arguments.command == Command::kPlan || arguments.has(Opt::kGpus);
  for (const SettingRow& row : setting_rows()) {
    if (row.kind == SettingKind::kList || arguments.has(opt_of(row.setting))) continue;
    if (!searches || row.setting == Setting::kGlobalBatch) left.insert(row.setting);
  }
  return left;
}

Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs) {
  if (runs.empty()) return Ok{};
  TPSIM_TRY(named.assumed, assumed_of(named, runs.front()));
  for (PlannedRun& run : runs) widen_interval(run.predicted, named.assumed);
  return Ok{};
}

void widen_interval(Prediction& prediction, const Assumed& assumed) {
  double slower = 0, faster = 0;
  for (const OpenChoice& one : assumed.open) {
    slower += one.slower * one.slower;
    faster += one.faster * one.faster;
  }
  widen_interval(prediction, std::sqrt(faster), std::sqrt(slower));
}

std::string assumed_view(const Terminal& terminal, const Assumed& assumed) {
  if (assumed.open.empty()) return "";
  std::string what, narrower;
  for (const OpenChoice& one : assumed.open) {
    what += fmt::format("{}{} {}", what.empty() ? "" : ", ", one.what, printable(one.taken));
    narrower +=
        fmt::format("{}state the {} ({}): +{}{}", narrower.empty() ? "" : "; ", one.what,
                    one.option, percent(one.half_width_if_stated),
                    narrower.empty() ? " instead of +" + percent(assumed.half_width_all_open) : "");
  }
  return "  " + terminal.paint("assumed      ", Ink::kDim) +
         wrapped(what + "; " + narrower, terminal.room(15, 85), 15) + "\n";
}

void add_assumed(JsonValue& report, const Assumed& assumed) {
  if (assumed.open.empty()) return;
  report.set("assumed",
             json_object({{"half_width_pct_all_stated", 100 * assumed.half_width_all_stated},
                          {"half_width_pct_all_open", 100 * assumed.half_width_all_open},
                          {"open", json_array(assumed.open, [](const OpenChoice& one) {
                             return json_object(
                                 {{"what", one.what},
                                  {"taken", one.taken},
                                  {"option", one.option},
                                  {"others", one.others},
                                  {"spread_pct", 100 * one.slower},
                                  {"spread_faster_pct", 100 * one.faster},
                                  {"half_width_pct_if_stated", 100 * one.half_width_if_stated}});
                           })}}));
}

}  // namespace tpsim::cli
