// Writes the hosts that a scheduler gave to a job.
#include <fmt/format.h>

#include <algorithm>

#include "app/scenario/allocated.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kNodesShown = 8;
constexpr std::size_t kMostRanks = 60;  // characters

std::string ranks_text(const UsedNode& node) {
  if (node.ranks.empty()) return "not used";
  const std::string text = ranges_text(node.ranks);
  if (text.size() <= kMostRanks) return "ranks " + text;
  return fmt::format("ranks {}...", text.substr(0, text.rfind(',', kMostRanks) + 1));
}

}  // namespace

void write_allocation(TextReport& out, const NamedScenario& named, const PlannedRun& run) {
  const std::vector<UsedNode> nodes = used_nodes(named, run.plan);
  if (nodes.empty()) return;
  std::vector<std::int64_t> gpus;
  for (const UsedNode& node : nodes) gpus.push_back(node.shape.gpus);
  const bool are_equal = std::count(gpus.begin(), gpus.end(), gpus.front()) == std::ssize(gpus);
  if (are_equal) gpus.resize(1);
  out.row("nodes", "{} of {} GPUs, {} given; {} of {} GPUs are used",
          counted_text(std::ssize(nodes), "node"), layers_text(gpus),
          counted_text(std::ssize(named.allocation.hosts), "host"), gpu_count(run.plan),
          gpus_of(named.scenario.cluster));
  for (std::size_t i = 0; i < nodes.size() && i < kNodesShown; ++i) {
    const UsedNode& node = nodes[i];
    out.row("", "{} ({} GPUs, {}): {}", printable(node.name), node.shape.gpus,
            counted_text(node.shape.nics, "NIC"), ranks_text(node));
  }
  if (nodes.size() > kNodesShown) {
    out.row("", "{} more; --rank-file writes the host of each rank", nodes.size() - kNodesShown);
  }
  if (!named.equal_nodes) return;
  const EqualNodes& equal = *named.equal_nodes;
  const Seconds step = run.predicted.step;
  const double change = (equal.step - step) / step;
  out.prose_row(
      "equal nodes",
      fmt::format("{} of {} GPUs would take {} a step, {} {}", counted_text(equal.nodes, "node"),
                  equal.gpus_per_node, time_text(equal.step),
                  percent_text(change < 0 ? -change : change), change < 0 ? "less" : "more"));
}

}  // namespace tpsim::cli
