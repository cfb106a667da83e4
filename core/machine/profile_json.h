// Profile files: {"format": "tpsim-profile/1", ...}.
//
// Samples are tables. "ops" is a list of {"op", "variant", "dtype", "dims", "samples"}: all samples
// of one kind, variant and dtype. A row holds "dims" dimensions of OpKey, the median in seconds,
// then optionally the relative spread and the count. "sustained" has the same structure, for ops
// timed at the clocks that training sustains. "algorithms" holds texts of the library that
// "algorithms_chosen_by" names. "collectives" is a list of {"collective", "ranks", "samples"} with
// rows of bytes and seconds.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/machine/profile.h"

namespace tpsim {

Result<Profile> read_profile(const std::filesystem::path& path);
Result<Profile> parse_profile(std::string_view text, const std::string& file);

// Groups samples by kind, variant and dtype, and keeps their order within a group.
std::string to_json(const Profile& profile);

// The JSON schema of profile files.
JsonValue profile_schema();

}  // namespace tpsim
