// Data files of the catalogue, compressed and embedded in the executable (cmake/PackData.cmake).
// Their paths begin with "shipped:", such as "shipped:/models/bloom-176b.json". The functions below
// also read folders on disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

inline constexpr std::string_view kShippedRoot = "shipped:";

// Whether a path refers to an embedded file.
bool is_shipped(const std::filesystem::path& path);

// Whether the executable contains the data files; false for the web page.
bool has_shipped_data();

// Returns the contents of an embedded file, or an error if the executable lacks it.
Result<std::string> read_shipped(const std::filesystem::path& path);

// Returns the names of a folder's files with this extension (".json"), without the extension,
// sorted. The folder is on disk or embedded in the executable. A missing folder has no files.
std::vector<std::string> stems_in(const std::filesystem::path& folder, std::string_view extension);

// Whether a file exists, on disk or embedded.
bool file_is_there(const std::filesystem::path& path);

}  // namespace tpsim
