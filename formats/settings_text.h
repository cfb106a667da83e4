// Parses YAML, TOML and JSON to a flat list of settings.
//
// YAML is parsed like PyYAML does, including anchors and merge keys. Tags other than YAML's core
// types, and a second document, are errors with a line number. Scalars keep the text of the file.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "formats/launch_file.h"

namespace tpsim {

struct FlatSetting {
  std::string key;    // "parallelism.tp", "data_stages.0.name"
  std::string value;  // without quotes; empty for "null" and "~"; each list element is a setting
  int line = 0;
};

// Returns "file:line", or the file alone if the line is 0.
std::string place_of(const std::string& file, int line);

// Parses the file by its extension; a file with an unknown extension is parsed as YAML. A syntax
// error has a line number.
Result<std::vector<FlatSetting>> flat_settings(const LaunchFile& file);
// Texts of several lines are empty unless `keeps_texts`: settings of a plan have one line.
Result<std::vector<FlatSetting>> flat_yaml(std::string_view text, const std::string& file,
                                           bool keeps_texts = false);
Result<std::vector<FlatSetting>> flat_toml(std::string_view text, const std::string& file);

// Key that states the Python class or function which creates a section.
inline constexpr std::string_view kMadeBy = "_target_";
// Whether a name of --set is a setting: it contains '.' or '-' ("model.bf16", "vocab-size"). Other
// names may be arguments of a Python function.
bool names_setting(std::string_view name);

// Returns the setting with this key; null if there is none.
const FlatSetting* find_setting(const std::vector<FlatSetting>& settings, std::string_view key);
FlatSetting* find_setting(std::vector<FlatSetting>& settings, std::string_view key);
bool has_key(const std::vector<FlatSetting>& settings, std::string_view key);
bool has_any_key(const std::vector<FlatSetting>& settings,
                 std::initializer_list<std::string_view> keys);
// Returns the setting's value; `otherwise` if the setting is absent.
std::string setting_value(const std::vector<FlatSetting>& settings, std::string_view key,
                          std::string_view otherwise = "");
// Returns the setting's value as a whole number; `otherwise` if it is absent or not a number.
std::int64_t setting_number(const std::vector<FlatSetting>& settings, std::string_view key,
                            std::int64_t otherwise = 0);

// Adds the setting, in place of one with its key.
void put_setting(FlatSetting setting, std::vector<FlatSetting>& settings);
inline void put_setting(std::vector<FlatSetting>& settings, std::string key, std::string value) {
  put_setting({std::move(key), std::move(value)}, settings);
}
void put_settings(std::vector<FlatSetting> more, std::vector<FlatSetting>& settings);
// Removes the settings whose key matches one of the patterns. Returns whether there were any.
bool drop_settings(std::vector<FlatSetting>& settings, std::string_view patterns);

// Reads settings by key and removes each one that is read. left() returns the settings that were
// not read.
class FlatReader {
 public:
  explicit FlatReader(std::vector<FlatSetting> settings) : left_(std::move(settings)) {}

  bool has(std::string_view key) const;
  std::optional<std::string> text(std::string_view key);
  // Returns true for "true" and "yes" in any case, and `fallback` if the setting is absent.
  bool flag(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback);
  void fail(std::string message, std::string hint = "");
  // Returns the elements of the list `key`, or the words of its text, separated by spaces or
  // commas.
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

// Returns the settings with resolved references. ${a.b} refers to a key of the file, as in
// OmegaConf. ${NAME} and ${oc.env:NAME,default} refer to the environment.
//
// `given` contains environment variables and settings. A name that no ${...} refers to sets the
// setting with that key. A reference to an unknown name stays in the value, marked by kUnset
// (formats/unset_marks.h).
std::vector<FlatSetting> with_values(std::vector<FlatSetting> settings,
                                     const std::map<std::string, std::string>& given);

}  // namespace tpsim
