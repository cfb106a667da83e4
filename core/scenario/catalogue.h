// The data shipped with tpsim: models, clusters, profiles and stacks by name.
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
template <>  // also the names of the folders
inline constexpr auto kEnumNames<CatalogueKind> = words<4>("models clusters profiles stacks");

class Catalogue {
 public:
  // Opens $TPSIM_DATA if set ("shipped:": the data embedded in the executable). Otherwise opens
  // data/ of the source tree for a program in its build tree, else the embedded data
  // (core/base/shipped_data.h).
  static Result<Catalogue> open();
  explicit Catalogue(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Returns the folder of the data files; "shipped:" for the embedded data.
  const std::filesystem::path& directory() const { return directory_; }

  // Returns the names of all entries of a kind, sorted.
  std::vector<std::string> list(CatalogueKind kind) const;

  // Loads an entry by name or a file by path; a path contains '/' or ends in ".json". The error for
  // an unknown name offers the nearest one. Models can also be named by their public name
  // ("Qwen/Qwen3-8B") or by a folder with a config.json.
  Result<ModelSpec> load_model(std::string_view name_or_path) const;
  Result<ClusterSpec> load_cluster(std::string_view name_or_path) const;
  Result<Profile> load_profile(std::string_view name_or_path) const;
  Result<StackSpec> load_stack(std::string_view name_or_path) const;

  // Returns "fnv1a:0123456789abcdef", a hash of the contents of an entry's file, independent of
  // layout.
  Result<std::string> contents_hash(CatalogueKind kind, std::string_view name_or_path) const;

  // Returns the file of a table of measured runs. A text that contains '/', ends in ".csv" or is an
  // existing file is a path. Other texts are names of shipped tables, such as bloom_jean_zay.
  Result<std::filesystem::path> find_runs(std::string_view name_or_path) const;

 private:
  Result<HubNames> hub_names() const;
  // Returns the model with this name; nullopt if the name is a file or unknown.
  Result<std::optional<std::string>> by_public_name(std::string_view name) const;
  Result<std::filesystem::path> find(CatalogueKind kind, std::string_view name_or_path) const;

  std::filesystem::path directory_;
};

}  // namespace tpsim
