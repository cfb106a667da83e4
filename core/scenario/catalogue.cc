#include "core/scenario/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

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

// A program in its build tree reads data/ of the source tree, so that changed data need no build.
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

// "Models" of a message: "model".
std::string singular(CatalogueKind kind) {
  std::string name(name_of(kind));
  name.pop_back();
  return name;
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

namespace {

std::string without_dashes(std::string name) {
  std::erase_if(name, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return name;
}

// Tuned versions of a model have its shape: "qwen3-8b-base" is qwen3-8b. What only one entry goes
// on from is that one: "qwen3-235b".
std::optional<std::string> entry_called(const std::string& wanted,
                                        const std::vector<std::string>& names) {
  const auto has = [&](const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  if (has(wanted)) return wanted;
  for (const std::string_view tuned : {"-base", "-instruct", "-chat", "-it", "-pt", "-hf"}) {
    if (!wanted.ends_with(tuned)) continue;
    const std::string plain = wanted.substr(0, wanted.size() - tuned.size());
    if (has(plain)) return plain;
  }
  const auto alike = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return without_dashes(name) == without_dashes(wanted);
  });
  if (alike != names.end()) return *alike;
  constexpr std::string_view kFirst = "-v0.1";  // has no number of its own in most names
  if (wanted.ends_with(kFirst)) {
    return entry_called(wanted.substr(0, wanted.size() - kFirst.size()), names);
  }
  std::optional<std::string> longer;
  for (const std::string& name : names) {
    if (!name.starts_with(wanted + "-")) continue;
    if (longer) return std::nullopt;
    longer = name;
  }
  return longer;
}

}  // namespace

// "Qwen/Qwen3-8B" is qwen3-8b and "Llama3-8B" is llama-3-8b: no matter whose it is, in what case it
// is written and where it has dashes.
std::optional<fs::path> Catalogue::by_public_name(CatalogueKind kind, std::string_view name) const {
  if (kind != CatalogueKind::kModels || name.ends_with(".json")) return std::nullopt;
  std::error_code ignored;
  if (fs::exists(name, ignored)) return std::nullopt;
  const std::string wanted = in_lower_case(std::string(name.substr(name.find_last_of('/') + 1)));
  const std::vector<std::string> names = list(kind);
  const std::optional<std::string> entry = entry_called(wanted, names);
  return entry ? std::optional(directory_ / name_of(kind) / (*entry + ".json")) : std::nullopt;
}

Result<fs::path> Catalogue::find(CatalogueKind kind, std::string_view name_or_path) const {
  if (const auto known = by_public_name(kind, name_or_path)) return *known;
  const std::vector<std::string> names = list(kind);
  const auto index = choose(singular(kind), name_or_path, names);
  if (index.ok()) return directory_ / name_of(kind) / (names[*index] + ".json");
  std::error_code ignored;
  const bool is_path = name_or_path.find('/') != std::string_view::npos ||
                       name_or_path.ends_with(".json") ||
                       (kind == CatalogueKind::kModels && fs::is_directory(name_or_path, ignored));
  if (is_path) return fs::path(name_or_path);
  constexpr std::size_t kMostListed = 24;
  Error error = index.error();
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
  return read_model(path);
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
