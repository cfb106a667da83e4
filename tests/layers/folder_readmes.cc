#include "tests/layers/folder_readmes.h"

#include <fstream>
#include <regex>

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestReadme = 15;
constexpr std::string_view kMayInclude = "May include:";
constexpr std::string_view kOpenFirst = "Open first:";

}  // namespace

std::string folder_of(const fs::path& source) {
  auto part = source.begin();
  const fs::path first = *part++;
  const fs::path second = *part++;
  return part == source.end() ? first.string() : (first / second).generic_string();
}

std::string FolderReadmes::include_fault(const std::string& folder, const std::string& header) {
  const std::set<std::string>& allowed = allowed_by(folder);
  const std::string from = folder_of(header);
  if (from == folder || from == "generated" || allowed.contains(from)) return "";
  return folder + "/README.md does not list " + from + ", the folder of \"" + header + "\"";
}

const std::set<std::string>& FolderReadmes::allowed_by(const std::string& folder) {
  const auto [place, is_new] = allowed_.try_emplace(folder);
  if (is_new) read(folder, place->second);
  return place->second;
}

void FolderReadmes::read(const std::string& folder, std::set<std::string>& allowed) {
  const std::string path = folder + "/README.md";
  std::ifstream file(root_ / path);
  if (!file) {
    faults_.emplace_back(path, "a folder of sources without a README.md");
    return;
  }
  static const std::regex in_quotes("`([^`]+)`");
  bool lists_folders = false, names_file = false;
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const bool is_list = line.starts_with(kMayInclude);
    const bool is_first = line.starts_with(kOpenFirst);
    lists_folders = lists_folders || is_list;
    for (std::sregex_iterator it(line.begin(), line.end(), in_quotes), end; it != end; ++it) {
      const std::string name = (*it)[1];
      if (is_list) {
        if (!fs::is_directory(root_ / name)) faults_.emplace_back(path, name + " is not a folder");
        allowed.insert(name);
      } else if (is_first && !names_file) {  // the rest of the line may contain other quoted names
        if (!fs::exists(root_ / folder / name)) faults_.emplace_back(path, name + " is not a file");
        names_file = true;
      }
    }
  }
  if (lines > kLongestReadme) faults_.emplace_back(path, "more than 15 lines");
  if (!lists_folders) faults_.emplace_back(path, "no line begins with \"May include:\"");
  if (!names_file) faults_.emplace_back(path, "no line \"Open first:\" names a file in `quotes`");
}

bool FolderReadmes::reaches(const std::string& from, const std::string& to,
                            std::set<std::string>& seen) const {
  const auto found = allowed_.find(from);
  if (found == allowed_.end() || !seen.insert(from).second) return false;
  for (const std::string& next : found->second) {
    if (next == to || reaches(next, to, seen)) return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> FolderReadmes::faults() const {
  std::vector<std::pair<std::string, std::string>> all = faults_;
  for (const auto& [folder, allowed] : allowed_) {
    std::set<std::string> seen;
    if (reaches(folder, folder, seen)) {
      all.emplace_back(folder + "/README.md", "the folders that it lists include it in turn");
      break;  // the other folders of the cycle would repeat the fault
    }
  }
  return all;
}

}  // namespace tpsim
