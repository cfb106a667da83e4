// Creates a profile of an unmeasured GPU from its datasheet.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/machine/profile.h"

namespace tpsim::cli {

struct DatasheetProfile {
  std::string text;  // the file: stated values, without constants that have defaults
  Profile profile;
};

// `facts` are KEY=VALUE. Errors name all missing keys at once, the nearest key for an unknown one,
// and valid units if a unit is missing.
Result<DatasheetProfile> datasheet_profile(const std::string& name,
                                           const std::vector<std::string>& facts,
                                           const std::string& date);

}  // namespace tpsim::cli
