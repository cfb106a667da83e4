// Whole files in and out.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim {

// The bytes of a file, on disk or in the program (core/base/shipped_data.h). One that cannot be
// read, or is larger than `most_bytes`, is an error.
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

// A folder for files that are handed to another program, removed with all that is in it. Nobody
// else may look into it (mode 0700), and its name is drawn: nobody can have put a link there
// before.
class PrivateFolder {
 public:
  // Below TMPDIR.
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
