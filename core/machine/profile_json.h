// Profile files: {"format": "tpsim-profile/1", ...}.
//
// Samples are tables. "ops" is a list of {"op", "variant", "dtype", "dims", "samples"}: all samples
// of one kind, variant and element type; a row holds that many dims of OpKey, then the median in
// seconds, then (where it is known) the relative spread and the count. "sustained" is such a list
// too, of ops timed at the clocks that training sustains. "algorithms" holds texts of the library
// that "algorithms_chosen_by" names. "collectives" is a list of
// {"collective", "ranks", "samples"} with rows of bytes and seconds.
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

// Samples of one kind are brought together; within a kind they keep their order.
std::string to_json(const Profile& profile);

// The JSON schema of its files.
JsonValue profile_schema();

}  // namespace tpsim
