// Finds files that a script or a configuration file refers to.
#include <fmt/format.h>

#include "core/base/text.h"
#include "formats/shell_script.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

// Number of parent folders to search, because trainings are usually started from the root of their
// repository.
constexpr int kAbove = 4;

}  // namespace

std::optional<std::string> text_of_named(const std::string& name, const ImportInputs& inputs) {
  for (const LaunchFile& more : inputs.more) {
    if (path_of(more) == name) return more.text;
  }
  std::string place = name;
  const int above = name.starts_with('/') ? 0 : kAbove;
  for (int i = 0; inputs.open && i <= above; ++i) {
    auto text = inputs.open(place);
    if (text.ok()) return *std::move(text);
    place.insert(0, "../");
  }
  return std::nullopt;
}

Error not_there(const std::string& name, const std::string& by, const std::string& otherwise) {
  return bad_input(fmt::format("names {}, which does not exist", name), by,
                   "put a file at this path, relative to the file that names it" + otherwise);
}

Result<std::vector<FlatSetting>> named_settings(const std::string& name, const std::string& by,
                                                const ImportInputs& inputs,
                                                const std::string& otherwise) {
  const auto text = text_of_named(name, inputs);
  if (!text) return not_there(name, by, otherwise);
  return flat_settings({name, *text, name});
}

Status put_over_bases(std::string_view keys, bool is_needed, const std::string& path,
                      const ImportInputs& inputs, std::vector<FlatSetting>& settings, int depth) {
  constexpr int kMostBases = 16;
  std::vector<FlatSetting> all;
  for (const FlatSetting& one : std::vector<FlatSetting>(settings)) {
    if (!matches_any(one.key, keys) || !one.value.ends_with(".yaml") || depth > kMostBases)
      continue;
    drop_settings(settings, one.key);
    const std::string name = plain_path(path.substr(0, path.find_last_of('/') + 1) + one.value);
    if (!is_needed && !text_of_named(name, inputs)) continue;
    TPSIM_TRY(std::vector<FlatSetting> base, named_settings(name, path, inputs));
    TPSIM_TRY_STATUS(put_over_bases(keys, is_needed, name, inputs, base, depth + 1));
    put_settings(std::move(base), all);
  }
  if (all.empty()) return Ok{};
  for (FlatSetting& one : all) one.line = 0;
  for (const FlatSetting& one : settings) {
    std::erase_if(all, [&](const FlatSetting& other) {  // a value in place of a section
      return other.key.starts_with(one.key) && other.key[one.key.size()] == '.';
    });
  }
  put_settings(std::move(settings), all);
  settings = std::move(all);
  return Ok{};
}

}  // namespace tpsim
