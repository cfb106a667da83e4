#include "cli/effective_file.h"

#include <fmt/format.h>

#include "cli/values.h"
#include "core/model_json.h"
#include "sim/machine_cluster.h"

namespace tpsim::cli {
namespace {

// Whether the option names something else than the plan file does.
bool names_another(const Arguments& arguments, Opt opt, const Catalogue& catalogue,
                   CatalogueKind kind, const std::string& saved) {
  if (!arguments.has(opt)) return false;
  const std::string& asked = *arguments[opt];
  if (asked == saved) return false;
  const auto old_contents = catalogue.contents_hash(kind, saved);
  const auto new_contents = catalogue.contents_hash(kind, asked);
  return !old_contents.ok() || !new_contents.ok() || *old_contents != *new_contents;
}

// The profile of a cluster: a saved one stays where it describes the same GPUs.
Result<std::string> profile_on(const Catalogue& catalogue, const std::string& cluster,
                               const std::string& saved) {
  if (cluster == kThisMachine) return saved;
  const Result<ClusterSpec> target = catalogue.load_cluster(cluster);
  if (!target.ok()) return std::string();  // whoever loads the cluster reports it
  const Result<Profile> old_profile = catalogue.load_profile(saved);
  TPSIM_TRY(const Profile new_profile, catalogue.load_profile(target->profile));
  const bool same_gpus = old_profile.ok() && old_profile->device.name == new_profile.device.name;
  return same_gpus ? saved : target->profile;
}

Status move_to_cluster(const Arguments& arguments, const Catalogue& catalogue,
                       EffectiveFile& effective) {
  PlanFile& file = effective.file;
  const Result<ClusterSpec> left = catalogue.load_cluster(file.cluster);
  file.cluster = *arguments[Opt::kCluster];
  if (file.node_gbps > 0) {
    effective.dropped.push_back(fmt::format("network of {} Gb/s a node", file.node_gbps));
    file.node_gbps = 0;
  }
  const std::string saved = file.profile;
  TPSIM_TRY(file.profile, profile_on(catalogue, file.cluster, saved));
  const bool is_own = left.ok() && left->profile == saved;  // goes without saying
  if (file.profile != saved && !is_own) effective.dropped.push_back("profile " + saved);
  // This program's own software has a name for each kind of device.
  const Result<Profile> old_profile = catalogue.load_profile(saved);
  const Result<Profile> new_profile = catalogue.load_profile(file.profile);
  const bool runs_itself = old_profile.ok() && file.stack == own_stack(*old_profile);
  if (runs_itself && new_profile.ok()) file.stack = own_stack(*new_profile);
  file.network_assumed = false;
  return Ok{};
}

}  // namespace

Result<EffectiveFile> effective_file(const Arguments& arguments, const Catalogue& catalogue,
                                     const std::optional<PlanFile>& file) {
  EffectiveFile effective;
  PlanFile& names = effective.file;
  if (file) names = *file;
  const auto is_another = [&](Opt opt, CatalogueKind kind, const std::string& saved) {
    return names_another(arguments, opt, catalogue, kind, saved);
  };
  if (arguments.has(Opt::kCluster)) {
    const bool moves = file && is_another(Opt::kCluster, CatalogueKind::kClusters, names.cluster);
    if (moves) TPSIM_TRY_STATUS(move_to_cluster(arguments, catalogue, effective));
    names.cluster = *arguments[Opt::kCluster];  // a copy of the saved one by its own name
  }
  if (is_another(Opt::kProfile, CatalogueKind::kProfiles, names.profile)) {
    names.profile = *arguments[Opt::kProfile];
  }
  if (is_another(Opt::kStack, CatalogueKind::kStacks, names.stack)) {
    names.stack = *arguments[Opt::kStack];
    names.stack_assumed = false;
  }
  TPSIM_TRY(const double asked, node_gbps_of(arguments));
  if (asked > 0) {
    names.network_assumed = names.network_assumed && asked == names.node_gbps;
    names.node_gbps = asked;
  }
  return effective;
}

ModelSpec model_beside(const PlanFile& file, ModelSpec named, std::vector<std::string>& dropped) {
  ModelSpec same = named;
  same.seq = file.model.seq;
  same.attention_dropout = file.model.attention_dropout;
  if (to_json(same) == to_json(file.model)) return file.model;
  if (named.seq != file.model.seq) {
    dropped.push_back(fmt::format("sequences of {} tokens", file.model.seq));
  }
  if (named.attention_dropout != file.model.attention_dropout) {
    dropped.push_back(fmt::format("attention dropout of {}", file.model.attention_dropout));
  }
  return named;
}

}  // namespace tpsim::cli
