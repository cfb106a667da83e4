// The catalogue's files that are part of the program, compressed (cmake/PackData.cmake). They go by
// paths that begin with "shipped:", as "shipped:/models/bloom-176b.json"; those of a folder on disk
// are read by the same functions.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

inline constexpr std::string_view kShippedRoot = "shipped:";

// Whether a path leads into the program.
bool is_shipped(const std::filesystem::path& path);

// Whether the program brings its data: a page does not.
bool has_shipped_data();

// The contents of a file in the program; an error where there is none of this name.
Result<std::string> read_shipped(const std::filesystem::path& path);

// The files of a folder, on disk or in the program, whose names end in `extension` (".json"): names
// without it, in alphabetical order. A folder that is not there has none.
std::vector<std::string> stems_in(const std::filesystem::path& folder, std::string_view extension);

// Whether a file is there, on disk or in the program.
bool file_is_there(const std::filesystem::path& path);

}  // namespace tpsim
