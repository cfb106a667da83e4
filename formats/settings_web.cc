// Replacements for web pages, where configuration files cannot be read: each function returns an
// error.
#include "formats/python_runner.h"
#include "formats/settings_text.h"

namespace tpsim {

Result<std::vector<FlatSetting>> flat_yaml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "YAML files cannot be read in a web page", file, ""};
}

Result<std::vector<FlatSetting>> flat_toml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "TOML files cannot be read in a web page", file, ""};
}

Result<std::string> output_of_recipes(std::vector<std::string>) {
  return Error{ErrorKind::kMissing, "Python files cannot be run in a web page", "", ""};
}

}  // namespace tpsim
