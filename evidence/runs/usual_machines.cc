#include "evidence/runs/usual_machines.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"

namespace tpsim {
namespace {

// Spread of what such rows leave to the usual machine and software. With it intervals hold nine of
// ten rows of data/strangers/moe_rows.csv, without it 89 %.
constexpr std::string_view kUntil = " until ";
constexpr double kUnstatedSpread = 0.03;

// `name`: an entry of ClusterSpec::usual_for.
RunEnvironment environment_for(std::string_view name, const ClusterSpec& cluster) {
  RunEnvironment usual;
  if (const std::size_t place = name.find(kUntil); place != std::string_view::npos) {
    usual.until = name.substr(place + kUntil.size());
    name = name.substr(0, place);
  }
  usual.gpu = cut_off(name, "+");
  usual.framework = name;
  usual.source = "the usual machine of its GPU";
  usual.runs_on = cluster.name;
  usual.stack = cluster.stack;
  usual.by_names = true;
  usual.extra_spread = kUnstatedSpread;
  return usual;
}

}  // namespace

std::vector<RunEnvironment> usual_environments(const std::vector<ClusterSpec>& clusters) {
  std::vector<RunEnvironment> usual;
  for (const ClusterSpec& cluster : clusters) {
    std::string_view names = cluster.usual_for;
    while (!names.empty()) usual.push_back(environment_for(cut_off(names, ","), cluster));
  }
  std::stable_sort(usual.begin(), usual.end(), [](const auto& a, const auto& b) {
    if (a.gpu.size() != b.gpu.size()) return a.gpu.size() > b.gpu.size();
    if (a.framework.size() != b.framework.size()) return a.framework.size() > b.framework.size();
    return !a.until.empty() && b.until.empty();
  });
  return usual;
}

}  // namespace tpsim
