// YAML, TOML and JSON as one flat list of settings.
//
// YAML is read as PyYAML reads it, with anchors and merge keys. Tags other than YAML's core types
// and a second document are errors with a line. Scalars keep the text of the file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "formats/launch_file.h"

namespace tpsim {

struct FlatSetting {
  std::string key;    // "parallelism.tp", "data_stages.0.name"
  std::string value;  // without quotes; empty for "null" and "~"; list elements have their own keys
  int line = 0;
};

// Returns "file:line", or the file alone if the line is 0.
std::string place_of(const std::string& file, int line);

// Parses by the file's extension; an unknown extension is read as YAML. An unreadable file is an
// error with a line.
Result<std::vector<FlatSetting>> flat_settings(const LaunchFile& file);
Result<std::vector<FlatSetting>> flat_yaml(std::string_view text, const std::string& file);
Result<std::vector<FlatSetting>> flat_toml(std::string_view text, const std::string& file);

// Key of the class or function that a configuration instantiates.
inline constexpr std::string_view kMadeBy = "_target_";
// Whether the name contains '.' or '-' ("model.bf16", "vocab-size"). Arguments of Python functions
// cannot.
bool names_setting(std::string_view name);

// Returns the setting with this key; null if there is none.
const FlatSetting* find_setting(const std::vector<FlatSetting>& settings, std::string_view key);
bool has_key(const std::vector<FlatSetting>& settings, std::string_view key);

// Removes settings by name as they are read. The remaining ones were not read.
class FlatReader {
 public:
  explicit FlatReader(std::vector<FlatSetting> settings) : left_(std::move(settings)) {}

  bool has(std::string_view key) const;
  std::optional<std::string> text(std::string_view key);
  // True for "true" and "yes" in any case.
  bool flag(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback);
  void fail(std::string message, std::string hint = "");
  // Returns the elements of a list below `key`, or the words of a text.
  std::vector<std::string> list(std::string_view key);
  std::vector<FlatSetting>& left() { return left_; }
  const std::vector<FlatSetting>& all() const { return left_; }
  const std::vector<std::string>& asked() const { return asked_; }
  Status error() const;

 private:
  std::vector<FlatSetting> left_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

// Returns the settings with all references resolved. ${a.b} refers to a key of the file, as in
// OmegaConf. ${NAME} and ${oc.env:NAME,default} refer to the environment.
// `given` holds environment variables and settings. A name that no ${...} refers to replaces the
// setting with that key, or adds one. An unknown name stays in the value, marked by kUnset
// (formats/shell_words.h).
std::vector<FlatSetting> with_values(std::vector<FlatSetting> settings,
                                     const std::map<std::string, std::string>& given);

}  // namespace tpsim
