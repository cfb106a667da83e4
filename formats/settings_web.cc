// Replacements for web pages, where configuration files cannot be read: each function returns an
// error.
#include "formats/python_runner.h"
#include "formats/settings_text.h"

namespace tpsim {

Result<std::vector<FlatSetting>> flat_yaml(std::string_view, const std::string& file, bool) {
  return Error{ErrorKind::kMissing, "the web page cannot read YAML files; the program tpsim can",
               file, ""};
}

Result<std::vector<FlatSetting>> flat_toml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "the web page cannot read TOML files; the program tpsim can",
               file, ""};
}

Result<std::string> output_of_recipes(std::vector<std::string>, const std::string&) {
  return Error{ErrorKind::kMissing, "the web page cannot run Python files; the program tpsim can",
               "", ""};
}

}  // namespace tpsim
