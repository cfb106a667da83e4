// Reads and writes whole files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim {

// Returns the bytes of a file, on disk or embedded in the executable (core/base/shipped_data.h), or
// of standard input if the path is "-". Error if the file cannot be read or is larger than
// `most_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t most_bytes);

// Writes a temporary file in the target's folder, syncs and renames it: readers see the old file or
// the whole new file. Follows a symbolic link to its target. On an error (no such folder, full
// disk, not a regular file) nothing is left behind and an existing file is unchanged.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);
// Writes the concatenation of `pieces` in the same way.
Status write_file_atomically(const std::filesystem::path& path,
                             std::span<const std::string_view> pieces);

// Syncs a folder, so that files created or renamed in it survive a power cut. Does nothing if the
// file system does not support it.
void sync_folder(const std::filesystem::path& folder);

// A temporary folder for files that are handed to another program, deleted with its contents. Mode
// 0700 keeps other users out. The random name keeps other users from placing a link there first.
class PrivateFolder {
 public:
  // Creates the folder below TMPDIR.
  static Result<PrivateFolder> create();
  ~PrivateFolder();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit PrivateFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tpsim
