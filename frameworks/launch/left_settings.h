// Collects settings of launch files that prevent an import, because tpsim refuses them or does not
// recognize them.
#pragma once

#include <string>
#include <vector>

#include "frameworks/launch/imported_plan.h"

namespace tpsim {

// All readers of an import add to the same list, so that one error reports every such setting.
class LeftSettings {
 public:
  // Adds a setting that changes the plan and is not modelled. `what` is the setting with its value,
  // as in the file; `why` is the reason. `where` is "file:line" and may be empty.
  void refuse(std::string setting, std::string what, std::string why, std::string where = "");
  // Adds an unknown setting. `likely` is the nearest known name, which the error suggests; may be
  // empty.
  void ask(std::string setting, std::string likely, std::string where = "");

  // Returns `read` if no setting is left. --set NAME=null removes one setting from the lists.
  // --assume-harmless accepts all unknown settings and adds their names to the plan. Otherwise
  // returns one error with all remaining settings, and with the error of `read` if there is one.
  Result<ImportedPlan> settled(Result<ImportedPlan> read, const ImportInputs& inputs) const;

 private:
  struct Setting {
    std::string name;
    std::string what;
    std::string detail;  // why it is refused, or the nearest known name
    std::string where;
  };
  using Settings = std::vector<Setting>;
  static std::string adapters_in(const Settings& refused);
  static std::string text_of(const Settings& refused, const Settings& unknown);
  static std::string remedy(const Settings& unknown);

  Settings refused_;
  Settings unknown_;
};

// Runs `read` with a new list of settings and reports the list. In a nested import, `read` uses the
// list of the outer import. An error without a location gets `path`.
template <class Read>
Result<ImportedPlan> with_settings_settled(const std::string& path, const ImportInputs& inputs,
                                           const Read& read) {
  if (inputs.left != nullptr) return read(inputs);
  LeftSettings left;
  ImportInputs collecting = inputs;
  collecting.left = &left;
  Result<ImportedPlan> settled = left.settled(read(collecting), inputs);
  if (settled.ok() || !settled.error().where.empty()) return settled;
  Error error = settled.error();
  error.where = path;
  return error;
}

}  // namespace tpsim
