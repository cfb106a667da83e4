// Stand-ins for web pages, which do not read configurations of other software.
#include "formats/python_runner.h"
#include "formats/settings_text.h"

namespace tpsim {

Result<std::vector<FlatSetting>> flat_yaml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "pages read no YAML", file, ""};
}

Result<std::vector<FlatSetting>> flat_toml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "pages read no TOML", file, ""};
}

Result<std::string> output_of_recipes(std::vector<std::string>) {
  return Error{ErrorKind::kMissing, "pages run no Python", "", ""};
}

}  // namespace tpsim
