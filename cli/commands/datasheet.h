// A profile of a GPU that nobody has timed, from what its datasheet says.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/machine/profile.h"

namespace tpsim::cli {

struct DatasheetProfile {
  std::string text;  // the file: what was stated, and no constant that has a default
  Profile profile;
};

// `facts` are KEY=VALUE. Errors name every missing key at once, the nearest key for an unknown one,
// and the units of a value that has none.
Result<DatasheetProfile> datasheet_profile(const std::string& name,
                                           const std::vector<std::string>& facts,
                                           const std::string& date);

}  // namespace tpsim::cli
