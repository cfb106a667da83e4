#include "app/scenario/effective_file.h"

#include <fmt/format.h>

#include "app/scenario/allocated.h"
#include "core/model/model_json.h"
#include "core/scenario/measured_stack.h"

namespace tpsim::app {
namespace {

// Whether `asked` names an entry that differs from the plan file's by name and by contents.
bool names_another(const std::string& asked, const Catalogue& catalogue, CatalogueKind kind,
                   const std::string& saved) {
  if (asked.empty()) return false;
  if (asked == saved || saved.empty()) return asked != saved;
  const auto old_contents = catalogue.contents_hash(kind, saved);
  const auto new_contents = catalogue.contents_hash(kind, asked);
  return !old_contents.ok() || !new_contents.ok() || *old_contents != *new_contents;
}

// Replaces the profile of the plan file by that of the new cluster, unless both describe the same
// GPU. If the stack is tpsim's own, also replaces it by the one for the new kind of device.
Status move_to_gpus(const Catalogue& catalogue, const ClusterSpec& target,
                    EffectiveFile& effective) {
  PlanFile& file = effective.file;
  const std::string saved = file.profile;
  const Result<Profile> old_profile = catalogue.load_profile(saved);
  TPSIM_TRY(const Profile new_profile, catalogue.load_profile(target.profile));
  if (old_profile.ok() && old_profile->device.name == new_profile.device.name) return Ok{};
  file.profile = target.profile;
  // tpsim's own stack has a different name for each kind of device.
  const bool runs_itself = old_profile.ok() && file.stack == own_stack(*old_profile);
  if (runs_itself) file.stack = own_stack(new_profile);
  return Ok{};
}

Status move_to_cluster(const std::string& cluster, const Catalogue& catalogue,
                       EffectiveFile& effective) {
  PlanFile& file = effective.file;
  const Result<ClusterSpec> left = catalogue.load_cluster(file.cluster);
  const std::string saved = file.profile;
  file.cluster = cluster;
  if (file.node_gbps > 0) {
    effective.dropped.push_back(fmt::format("network of {} Gb/s a node", file.node_gbps));
    file.node_gbps = 0;
  }
  if (!file.nodes.empty()) {
    effective.dropped.push_back(fmt::format("allocation of {} hosts", file.nodes.size()));
    file.nodes.clear();
  }
  file.network_assumed = false;
  if (file.cluster == kThisMachine) return Ok{};
  const Result<ClusterSpec> target = catalogue.load_cluster(file.cluster);
  if (!target.ok()) return Ok{};  // loading the cluster reports the error later
  TPSIM_TRY_STATUS(move_to_gpus(catalogue, *target, effective));
  const bool is_own = left.ok() && left->profile == saved;  // implied by the old cluster
  if (file.profile != saved && !is_own) effective.dropped.push_back("profile " + saved);
  return Ok{};
}

}  // namespace

Result<EffectiveFile> effective_file(const ScenarioRequest& request, const Catalogue& catalogue) {
  EffectiveFile effective;
  PlanFile& names = effective.file;
  if (request.file) names = *request.file;
  if (!request.cluster.empty()) {
    const bool moves = request.file && names_another(request.cluster, catalogue,
                                                     CatalogueKind::kClusters, names.cluster);
    if (moves) TPSIM_TRY_STATUS(move_to_cluster(request.cluster, catalogue, effective));
    // Set also if the contents are equal, so that reports show the name that the user gave.
    names.cluster = request.cluster;
  }
  if (names_another(request.profile, catalogue, CatalogueKind::kProfiles, names.profile)) {
    names.profile = request.profile;
  }
  if (names_another(request.stack, catalogue, CatalogueKind::kStacks, names.stack)) {
    names.stack = request.stack;
    names.stack_assumed = false;
  }
  if (request.node_gbps > 0) {
    names.network_assumed = names.network_assumed && request.node_gbps == names.node_gbps;
    names.node_gbps = request.node_gbps;
  }
  if (!request.nodes.empty()) {
    TPSIM_TRY(names.nodes, read_nodes(request.nodes));
  }
  return effective;
}

ModelSpec model_of_plan_file(const PlanFile& file, ModelSpec named) {
  ModelSpec same = named;
  same.seq = file.model.seq;
  same.attention_dropout = file.model.attention_dropout;
  return to_json(same) == to_json(file.model) ? file.model : named;
}

void note_dropped(const ScenarioRequest& request, const ModelSpec& model,
                  std::vector<std::string>& dropped) {
  if (!request.file || request.model.empty()) return;
  const ModelSpec& saved = request.file->model;
  if (!request.seq && model.seq != saved.seq) {
    dropped.push_back(fmt::format("sequences of {} tokens", saved.seq));
  }
  if (!request.attention_dropout && model.attention_dropout != saved.attention_dropout) {
    dropped.push_back(fmt::format("attention dropout of {}", saved.attention_dropout));
  }
}

}  // namespace tpsim::app
