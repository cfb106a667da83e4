// A page in a browser is given no configurations of other software to read.
#include "formats/settings_text.h"

namespace tpsim {

Result<std::vector<FlatSetting>> flat_yaml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "pages read no YAML", file, ""};
}

Result<std::vector<FlatSetting>> flat_toml(std::string_view, const std::string& file) {
  return Error{ErrorKind::kMissing, "pages read no TOML", file, ""};
}

Result<PythonSettings> flat_python(const std::string& path,
                                   const std::map<std::string, std::string>&) {
  return Error{ErrorKind::kMissing, "pages read no Python", path, ""};
}

}  // namespace tpsim
