// The README.md of each folder. It has at most 15 lines. One line begins with "May include:" and
// lists folders; one with "Open first:" names a file of the folder. Headers that CMake generates
// may be included anywhere.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tpsim {

// Returns "core/base" for core/base/units.h, "kernels" for kernels/ops.h, "kernels/cuda" for files
// below it.
std::string folder_of(const std::filesystem::path& source);

class FolderReadmes {
 public:
  explicit FolderReadmes(std::filesystem::path root) : root_(std::move(root)) {}

  // Returns why a source of `folder` may not include "`header`"; empty if the folder's README
  // allows it.
  std::string include_fault(const std::string& folder, const std::string& header);
  // Returns faults of the READMEs read so far, as (path, fault): a missing or long file, a missing
  // list, an unknown folder in a list, or an include cycle of folders.
  std::vector<std::pair<std::string, std::string>> faults() const;

 private:
  const std::set<std::string>& allowed_by(const std::string& folder);
  void read(const std::string& folder, std::set<std::string>& allowed);
  bool reaches(const std::string& from, const std::string& to, std::set<std::string>& seen) const;

  std::filesystem::path root_;
  std::map<std::string, std::set<std::string>> allowed_;  // by folder, from its README
  std::vector<std::pair<std::string, std::string>> faults_;
};

}  // namespace tpsim
