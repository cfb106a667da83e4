// Whole files in and out.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace tpsim {

// The bytes of a file. One that cannot be read, or is larger than `most_bytes`, is an error.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t most_bytes);

// Writes beside the target, syncs and renames: readers see the old file or the whole new one.
// Follows a link to its target. On an error (no such folder, full disk, not a regular file)
// nothing is left behind and an existing file stays as it was.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The same for a content in several pieces.
Status write_file_atomically(const std::filesystem::path& path,
                             std::span<const std::string_view> pieces);

// Makes what was created or renamed in a folder last through a power cut; where the file system
// cannot, it is as good.
void sync_folder(const std::filesystem::path& folder);

}  // namespace tpsim
