// Creates a profile of an unmeasured GPU from its datasheet.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/machine/profile.h"

namespace tpsim::app {

struct DatasheetProfile {
  // Contents of the profile file: the given values, without constants that have defaults.
  std::string text;
  Profile profile;
};

// `facts` are KEY=VALUE pairs. The error names all missing keys, the nearest key for an unknown
// key, and valid units if a unit is missing.
Result<DatasheetProfile> datasheet_profile(const std::string& name,
                                           const std::vector<std::string>& facts,
                                           const std::string& date);

}  // namespace tpsim::app
