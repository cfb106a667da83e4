// Settings of launch files that prevent an import: refused or unknown.
#pragma once

#include <string>
#include <vector>

#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// All readers of an import add to one list, so that one error reports all of them.
class LeftSettings {
 public:
  // Adds a setting that changes the plan and is not modelled, with the reason. `what` is the
  // setting with its value, as in the file. `where` is "file:line"; may be empty.
  void refuse(std::string setting, std::string what, std::string why, std::string where = "");
  // Adds an unknown setting. `likely` is the nearest known name; may be empty.
  void ask(std::string setting, std::string likely, std::string where = "");

  // Returns `read` if every setting is settled. --set NAME=null settles one setting.
  // --assume-harmless settles all unknown ones, which the plan lists. Otherwise returns an error
  // with all open settings, and with the error of `read` if there is one.
  Result<ImportedPlan> settled(Result<ImportedPlan> read, const ImportInputs& inputs) const;

 private:
  struct Setting {
    std::string name;
    std::string what;
    std::string detail;  // reason for refusal; or the nearest known name
    std::string where;
  };
  using Settings = std::vector<Setting>;
  static std::string adapters_in(const Settings& refused);
  static std::string text_of(const Settings& refused, const Settings& unknown);
  static std::string remedy(const Settings& unknown);

  Settings refused_;
  Settings unknown_;
};

// Runs `read` with a new list of settings, unless a surrounding import has one. Errors without a
// location name `path`.
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
