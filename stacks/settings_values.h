// Values that a configuration takes from elsewhere: ${a.b} of its own keys, as OmegaConf resolves
// them, ${NAME} and ${oc.env:NAME,default} of the environment, and settings said from outside.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stacks/settings_text.h"

namespace tpsim {

// With everything in place that is known. `given` are variables of the environment and settings: a
// name that no ${...} asks for replaces the setting of that key, or is one. What nobody knows keeps
// its name behind kUnset (stacks/shell_words.h), for whoever needs it to ask for.
std::vector<FlatSetting> with_values(std::vector<FlatSetting> settings,
                                     const std::map<std::string, std::string>& given);

}  // namespace tpsim
