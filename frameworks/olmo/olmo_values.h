// Values of an OLMo-core configuration by key, and the keys that have been read.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {

class OlmoValues {
 public:
  OlmoValues(const ResolvedRecipe& recipe, LeftSettings& left) : recipe_(recipe), left_(left) {
    for (const FlatSetting& one : recipe.settings) values_[one.key] = one.value;
  }

  // These return the value and mark the key as read. A missing value is empty or `otherwise`.
  std::string text(const std::string& key);
  std::string lower(const std::string& key);  // in lower case
  std::int64_t number(const std::string& key, std::int64_t otherwise = 0);
  double real(const std::string& key, double otherwise = 0);
  bool flag(const std::string& key, bool otherwise = false);
  std::vector<std::string> list(const std::string& key);

  // Whether the section exists: OLMo-core writes null for a section that is switched off.
  bool has_section(const std::string& key) const;
  // Whether any key starts with the prefix.
  bool has_prefix(const std::string& prefix) const;
  // Returns the dotted name of the class that the section is made of.
  std::string class_of(const std::string& key);

  // Adds the setting to the settings that tpsim refuses.
  void refuse(const std::string& key, const std::string& why);
  // Refuses the setting unless it is absent, null, false or zero.
  void refuse_if_set(const std::string& key, const std::string& why);

  // Returns the settings that have neither been read nor have the default of their class.
  std::vector<FlatSetting> unread() const;

 private:
  const ResolvedRecipe& recipe_;
  LeftSettings& left_;
  std::map<std::string, std::string> values_;
  std::set<std::string> read_;
  std::set<std::string> refused_;
};

// The model of a configuration, and the software parts that its modules select.
struct OlmoModel {
  ModelSpec model;
  PartValues parts;
  std::vector<std::string> notes;
};
// Reads the section "model". Settings that tpsim does not model are refused in `values`.
Result<OlmoModel> olmo_model(OlmoValues& values, std::int64_t seq);
// Sets recompute, precision and the software parts. The layout and the stages must be set.
void take_olmo_software(OlmoValues& values, ImportedPlan& result);

}  // namespace tpsim
