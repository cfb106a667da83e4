// Finds files that a script or a configuration file refers to.
#include <fmt/format.h>

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

}  // namespace tpsim
