#include "core/base/shipped_data.h"

#include <algorithm>

#include "core/base/packed_files.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

// Returns "models/bloom-176b.json" for "shipped:/models/bloom-176b.json".
std::string name_in_program(const fs::path& path) {
  std::string name = path.generic_string().substr(kShippedRoot.size());
  name.erase(0, name.find_first_not_of('/'));
  return name;
}

const PackedFile* packed_file(const std::string& name) {
  const auto files = packed_files();
  const auto at = std::lower_bound(
      files.begin(), files.end(), name,
      [](const PackedFile& file, const std::string& wanted) { return file.name < wanted; });
  return at != files.end() && at->name == name ? &*at : nullptr;
}

std::vector<std::string> stems_in_program(const fs::path& folder, std::string_view extension) {
  const std::string prefix = name_in_program(folder) + "/";
  std::vector<std::string> stems;
  for (const PackedFile& file : packed_files()) {
    if (!file.name.starts_with(prefix) || !file.name.ends_with(extension)) continue;
    stems.emplace_back(
        file.name.substr(prefix.size(), file.name.size() - prefix.size() - extension.size()));
  }
  return stems;
}

}  // namespace

bool is_shipped(const fs::path& path) { return path.native().starts_with(kShippedRoot); }

bool has_shipped_data() { return !packed_files().empty(); }

Result<std::string> read_shipped(const fs::path& path) {
  const PackedFile* file = packed_file(name_in_program(path));
  if (file == nullptr) return bad_input("tpsim has no built-in file with this name", path.string());
  return unpacked(*file);
}

std::vector<std::string> stems_in(const fs::path& folder, std::string_view extension) {
  std::vector<std::string> stems;
  if (is_shipped(folder)) {
    stems = stems_in_program(folder, extension);
  } else {
    std::error_code code;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
      if (entry.path().extension() == extension) stems.push_back(entry.path().stem().string());
    }
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

bool file_is_there(const fs::path& path) {
  if (is_shipped(path)) return packed_file(name_in_program(path)) != nullptr;
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace tpsim
