// The data that ships with tpsim: models, clusters, profiles and stacks by name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/model/model_spec.h"
#include "core/scenario/hub_names.h"
#include "core/software/stack_spec.h"

namespace tpsim {

enum class CatalogueKind : std::uint8_t { kModels, kClusters, kProfiles, kStacks };
template <>  // also the folders' names
inline constexpr auto kEnumNames<CatalogueKind> = words<4>("models clusters profiles stacks");

class Catalogue {
 public:
  // The data of $TPSIM_DATA where that is set ("shipped:" is what the program brings); else, for a
  // program that lies in a build tree, data/ of the source tree; else what the program brings
  // (core/base/shipped_data.h).
  static Result<Catalogue> open();
  explicit Catalogue(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // A folder, or "shipped:".
  const std::filesystem::path& directory() const { return directory_; }

  // Names in alphabetical order.
  std::vector<std::string> list(CatalogueKind kind) const;

  // A name of the catalogue, or the path of a file: what contains '/' or ends in ".json". A name
  // that is neither is an error that offers the nearest one. Models also go by their public name
  // ("Qwen/Qwen3-8B"), and by a folder that holds a config.json.
  Result<ModelSpec> load_model(std::string_view name_or_path) const;
  Result<ClusterSpec> load_cluster(std::string_view name_or_path) const;
  Result<Profile> load_profile(std::string_view name_or_path) const;
  Result<StackSpec> load_stack(std::string_view name_or_path) const;

  // "fnv1a:0123456789abcdef" of what an entry's file says, however it is laid out.
  Result<std::string> contents_hash(CatalogueKind kind, std::string_view name_or_path) const;

  // The file of a table of runs: a path (it contains '/', ends in ".csv" or is there), or the name
  // of one that ships, as bloom_jean_zay.
  Result<std::filesystem::path> find_runs(std::string_view name_or_path) const;

 private:
  Result<HubNames> hub_names() const;
  // The model that a name means; none where the name is a file or unknown.
  Result<std::optional<std::string>> by_public_name(std::string_view name) const;
  Result<std::filesystem::path> find(CatalogueKind kind, std::string_view name_or_path) const;

  std::filesystem::path directory_;
};

}  // namespace tpsim
