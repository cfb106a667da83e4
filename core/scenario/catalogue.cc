#include "core/scenario/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/shipped_data.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/software/stack_json.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

bool holds_catalogue(const fs::path& folder) {
  if (is_shipped(folder)) return has_shipped_data();
  std::error_code ignored;
  return fs::is_directory(folder / name_of(CatalogueKind::kModels), ignored) &&
         fs::is_directory(folder / name_of(CatalogueKind::kClusters), ignored);
}

// Returns data/ of the source tree if the executable is in a build tree, so that changed data files
// need no rebuild.
std::optional<fs::path> data_of_source_tree() {
  constexpr int kMostLevels = 4;
  std::error_code code;
  fs::path folder = fs::canonical("/proc/self/exe", code).parent_path();
  if (code || !fs::exists(folder / "CMakeCache.txt", code)) return std::nullopt;
  for (int level = 0; level < kMostLevels && folder != folder.root_path(); ++level) {
    folder = folder.parent_path();
    if (holds_catalogue(folder / "data")) return folder / "data";
  }
  return std::nullopt;
}

// Returns the singular for messages: "model" for kModels.
std::string singular(CatalogueKind kind) {
  std::string name(name_of(kind));
  name.pop_back();
  return name;
}

// Whether the name is "owner/name" and not a file.
bool is_hub_name(std::string_view name) {
  std::error_code ignored;
  return std::count(name.begin(), name.end(), '/') == 1 && !name.starts_with('/') &&
         !name.starts_with('.') && !name.ends_with('/') && !name.ends_with(".json") &&
         !fs::exists(name, ignored);
}

}  // namespace

Result<Catalogue> Catalogue::open() {
  if (const char* chosen = std::getenv("TPSIM_DATA"); chosen != nullptr && *chosen != '\0') {
    if (holds_catalogue(chosen)) return Catalogue(chosen);
    return bad_input(
        fmt::format("'{}' is not a data folder of tpsim: it lacks models/ or clusters/", chosen),
        "$TPSIM_DATA", "unset it to use the data that ships with tpsim");
  }
  if (const auto data = data_of_source_tree()) return Catalogue(*data);
  if (has_shipped_data()) return Catalogue(fs::path(kShippedRoot));
  return Error{ErrorKind::kMissing, "this program has no built-in data", "",
               "set TPSIM_DATA to the folder that holds models/, clusters/, profiles/, stacks/"};
}

std::vector<std::string> Catalogue::list(CatalogueKind kind) const {
  return stems_in(directory_ / name_of(kind), ".json");
}

Result<HubNames> Catalogue::hub_names() const {
  const fs::path path = directory_ / "hub" / "names.json";
  std::error_code ignored;
  // A user's data folder may lack the file.
  if (!is_shipped(directory_) && !fs::exists(path, ignored)) return HubNames{};
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  return hub_names_from_json(root, path.string());
}

// Ignores owner, case and dashes: "Qwen/Qwen3-8B" is qwen3-8b, "Llama3-8B" is llama-3-8b.
// "Qwen/Qwen2.5-Coder-32B-Instruct" has the shape of qwen2.5-32b.
Result<std::optional<std::string>> Catalogue::by_public_name(std::string_view name) const {
  std::error_code ignored;
  if (name.ends_with(".json") || fs::exists(name, ignored)) return std::optional<std::string>();
  TPSIM_TRY(const HubNames rules, hub_names());
  return entry_with_shape(rules, hub_stem(name), list(CatalogueKind::kModels));
}

Result<fs::path> Catalogue::find(CatalogueKind kind, std::string_view name_or_path) const {
  // Fast path for an exact name, without the list of entries and the rules of hub names.
  if (name_or_path.find('/') == std::string_view::npos) {
    fs::path exact = directory_ / name_of(kind) / fmt::format("{}.json", name_or_path);
    if (file_is_there(exact)) return exact;
  }
  const bool is_model = kind == CatalogueKind::kModels;
  const std::vector<std::string> names = list(kind);
  if (is_model) {
    TPSIM_TRY(const std::optional<std::string> known, by_public_name(name_or_path));
    if (known) return directory_ / name_of(kind) / (*known + ".json");
  }
  const bool is_public = is_model && is_hub_name(name_or_path);
  const auto index =
      choose(singular(kind), is_public ? hub_stem(name_or_path) : std::string(name_or_path), names);
  if (index.ok()) return directory_ / name_of(kind) / (names[*index] + ".json");
  std::error_code ignored;
  const bool is_path = !is_public && (name_or_path.find('/') != std::string_view::npos ||
                                      name_or_path.ends_with(".json") ||
                                      (is_model && fs::is_directory(name_or_path, ignored)));
  if (is_path) return fs::path(name_or_path);
  constexpr std::size_t kMostListed = 24;
  Error error = index.error();
  if (is_public) {
    TPSIM_TRY(const HubNames rules, hub_names());
    const std::string near = nearest_model(rules, hub_stem(name_or_path), names);
    error.message = fmt::format("unknown model '{}'", name_or_path);
    error.hint = fmt::format(
        "{}; for this model download https://huggingface.co/{}/raw/main/config.json and give the "
        "file instead of the name",
        near.empty() ? "tpsim show families lists the supported families" : "nearest: " + near,
        name_or_path);
    return error;
  }
  if (names.size() > kMostListed && error.hint.starts_with("choose from")) {
    error.hint = fmt::format("tpsim list {} shows all {}", name_of(kind), names.size());
  }
  return error;
}

Result<std::string> Catalogue::contents_hash(CatalogueKind kind,
                                             std::string_view name_or_path) const {
  TPSIM_TRY(const fs::path path, find(kind, name_or_path));
  TPSIM_TRY(const JsonValue contents, read_json_file(path));
  return fmt::format("fnv1a:{:016x}", fnv1a(to_text(contents)));
}

Result<fs::path> Catalogue::find_runs(std::string_view name_or_path) const {
  std::error_code code;
  const bool is_path = name_or_path.find('/') != std::string_view::npos ||
                       name_or_path.ends_with(".csv") || fs::exists(name_or_path, code);
  if (is_path) return fs::path(name_or_path);
  std::vector<std::string> names;
  std::vector<fs::path> tables;
  for (const char* folder : {"published_runs", "strangers"}) {
    for (const std::string& name : stems_in(directory_ / folder, ".csv")) {
      names.push_back(name);
      tables.push_back(directory_ / folder / (name + ".csv"));
    }
  }
  TPSIM_TRY(const std::size_t index, choose("table of runs", name_or_path, names));
  return tables[index];
}

Result<ModelSpec> Catalogue::load_model(std::string_view name_or_path) const {
  TPSIM_TRY(fs::path path, find(CatalogueKind::kModels, name_or_path));
  std::error_code ignored;
  if (fs::is_directory(path, ignored) && fs::exists(path / "config.json", ignored)) {
    path /= "config.json";
  }
  TPSIM_TRY(ModelSpec model, read_model(path));
  const std::string entry = path.stem().string();
  const bool is_entry = path.parent_path() == directory_ / name_of(CatalogueKind::kModels);
  const std::string called(name_or_path.substr(name_or_path.find_last_of('/') + 1));
  if (is_entry && called != path.filename() && !is_same_name(hub_stem(called), entry)) {
    model.notes.push_back(fmt::format("{} has the shape of {}", called, entry));
  }
  return model;
}

Result<ClusterSpec> Catalogue::load_cluster(std::string_view name_or_path) const {
  TPSIM_TRY(const fs::path path, find(CatalogueKind::kClusters, name_or_path));
  return read_cluster(path);
}

Result<Profile> Catalogue::load_profile(std::string_view name_or_path) const {
  TPSIM_TRY(const fs::path path, find(CatalogueKind::kProfiles, name_or_path));
  return read_profile(path);
}

Result<StackSpec> Catalogue::load_stack(std::string_view name_or_path) const {
  TPSIM_TRY(const fs::path path, find(CatalogueKind::kStacks, name_or_path));
  return read_stack(path);
}

}  // namespace tpsim
