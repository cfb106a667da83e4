// The catalogue's files inside the program, compressed (cmake/PackData.cmake). Their paths begin
// with "shipped:", such as "shipped:/models/bloom-176b.json". The functions below also read folders
// on disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

inline constexpr std::string_view kShippedRoot = "shipped:";

// Whether a path refers to a file inside the program.
bool is_shipped(const std::filesystem::path& path);

// Whether the program contains its data; false for the web page.
bool has_shipped_data();

// Returns the contents of a file inside the program; error if there is none of this name.
Result<std::string> read_shipped(const std::filesystem::path& path);

// Returns the names of a folder's files with this extension (".json"), without the extension,
// sorted. The folder is on disk or inside the program. A missing folder has no files.
std::vector<std::string> stems_in(const std::filesystem::path& folder, std::string_view extension);

// Whether a file exists, on disk or inside the program.
bool file_is_there(const std::filesystem::path& path);

}  // namespace tpsim
