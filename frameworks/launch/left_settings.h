// Settings of launch files that no plan is made of and that an import cannot pass over.
#pragma once

#include <string>
#include <vector>

#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// All readers of one import add to one list, so that the user is told of all of it at once.
class LeftSettings {
 public:
  // `setting` changes the plan and is not modelled; `why` says what it would change. `what` is the
  // setting with its value, as its owner wrote it. `where` is "file:line"; may be empty.
  void refuse(std::string setting, std::string what, std::string why, std::string where = "");
  // Nothing here knows `setting`; `likely` is the nearest known one and may be empty.
  void ask(std::string setting, std::string likely, std::string where = "");

  // `read`, if nothing was refused or asked. --set NAME=null answers for a setting,
  // --assume-harmless for all unknown ones, whose names the plan then keeps. Otherwise an error
  // with every setting of both groups, and with the error of `read` if there is one.
  Result<ImportedPlan> settled(Result<ImportedPlan> read, const ImportInputs& inputs) const;

 private:
  struct Setting {
    std::string name;
    std::string what;
    std::string detail;  // why it is refused; the nearest known name
    std::string where;
  };
  using Settings = std::vector<Setting>;
  static std::string adapters_in(const Settings& refused);
  static std::string text_of(const Settings& refused, const Settings& unknown);
  static std::string remedy(const Settings& unknown);

  Settings refused_;
  Settings unknown_;
};

// Runs `read` on inputs that collect what is left, unless an import around it does so already.
// Errors that name no place name `path`.
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
