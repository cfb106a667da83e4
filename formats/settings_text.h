// YAML, TOML and JSON as one flat list of settings.
//
// YAML is read as PyYAML reads it, anchors and merge keys included; tags other than YAML's own
// types and a second document are refused by line. Scalars stay the text that the file holds.
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
  std::string value;  // without its quotes; "null" and "~" are empty, elements of a list have keys
  int line = 0;
};

// "file:line"; the file alone for a setting that stands in none, whose line is 0.
std::string place_of(const std::string& file, int line);

// By the file's extension; .yaml where it has none that is known. What cannot be read is an error
// that names the line.
Result<std::vector<FlatSetting>> flat_settings(const LaunchFile& file);
Result<std::vector<FlatSetting>> flat_yaml(std::string_view text, const std::string& file);
Result<std::vector<FlatSetting>> flat_toml(std::string_view text, const std::string& file);

// The key under which a configuration names the class or function that makes it.
inline constexpr std::string_view kMadeBy = "_target_";
// "model.bf16", "vocab-size": an argument of a Python function never has such a name.
bool names_setting(std::string_view name);

// The setting of that key; null where there is none.
const FlatSetting* find_setting(const std::vector<FlatSetting>& settings, std::string_view key);
bool has_key(const std::vector<FlatSetting>& settings, std::string_view key);

// Takes settings out by name; what is left was not asked for.
class FlatReader {
 public:
  explicit FlatReader(std::vector<FlatSetting> settings) : left_(std::move(settings)) {}

  bool has(std::string_view key) const;
  std::optional<std::string> text(std::string_view key);
  // "true" and "yes" in any case.
  bool flag(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback);
  void fail(std::string message, std::string hint = "");
  // Elements of a list below `key`, or the words of a text.
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

// With every value in place that the file takes from elsewhere: ${a.b} of its own keys, as
// OmegaConf resolves them, ${NAME} and ${oc.env:NAME,default} of the environment. `given` are
// variables of the environment and settings: a name that no ${...} asks for replaces the setting of
// that key, or is one. What nobody knows keeps its name behind kUnset (formats/shell_words.h), for
// whoever needs it to ask for.
std::vector<FlatSetting> with_values(std::vector<FlatSetting> settings,
                                     const std::map<std::string, std::string>& given);

}  // namespace tpsim
