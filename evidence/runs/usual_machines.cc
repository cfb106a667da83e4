#include "evidence/runs/usual_machines.h"

#include <algorithm>
#include <sstream>
#include <string>

namespace tpsim {
namespace {

// Spread of what such rows leave to the usual machine and software. With it intervals hold nine of
// ten rows of data/strangers/moe_rows.csv, without it 89 %.
constexpr double kUnstatedSpread = 0.03;

RunEnvironment environment_for(const std::string& gpu_and_framework, const ClusterSpec& cluster) {
  RunEnvironment usual;
  const std::size_t plus = gpu_and_framework.find('+');
  usual.gpu = gpu_and_framework.substr(0, plus);
  if (plus != std::string::npos) usual.framework = gpu_and_framework.substr(plus + 1);
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
    std::istringstream names(cluster.usual_for);
    for (std::string name; std::getline(names, name, ',');) {
      usual.push_back(environment_for(name, cluster));
    }
  }
  std::stable_sort(usual.begin(), usual.end(), [](const auto& a, const auto& b) {
    if (a.gpu.size() != b.gpu.size()) return a.gpu.size() > b.gpu.size();
    return a.framework.size() > b.framework.size();
  });
  return usual;
}

}  // namespace tpsim
