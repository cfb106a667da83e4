#include "core/base/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Returns the number that follows `key` on the first line that starts with `key`, as in
// /proc/meminfo. Nullopt if the line is missing or has no number ("unlimited").
std::optional<double> number_behind(const fs::path& path, std::string_view key) {
  for (const std::string& line : lines_of(path)) {
    if (!line.starts_with(key)) continue;
    const std::vector<std::string> words = words_in(line.substr(key.size()));
    if (!words.empty()) return parse_number<double>(words.front());
  }
  return std::nullopt;
}

// Returns the only number of a file; nullopt if the file holds a word ("max") or is missing.
std::optional<double> number_in(const fs::path& path) { return number_behind(path, ""); }

// Names of the files of one cgroup version.
struct CgroupFiles {
  std::string_view controller;  // on the line of /proc/self/cgroup
  std::string_view mount;
  std::string_view limit, usage;
  std::vector<std::string_view> cached;  // keys in memory.stat: page cache, freed on demand
};

const std::vector<CgroupFiles>& versions() {
  static const std::vector<CgroupFiles> all = {
      {"", "sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
      {"memory",
       "sys/fs/cgroup/memory",
       "memory.limit_in_bytes",
       "memory.usage_in_bytes",
       {"total_inactive_file ", "total_active_file "}}};
  return all;
}

// Returns the process's cgroup below the mount of a version, "/job_7/step_0"; empty if there is
// none. Lines are "4:memory:/job_7/step_0" (version 1) or "0::/job_7/step_0" (version 2).
std::string cgroup_of(const fs::path& root, std::string_view controller) {
  for (const std::string& line : lines_of(root / "proc/self/cgroup")) {
    std::string_view rest = line;
    cut_off(rest, ":");
    std::string_view controllers = cut_off(rest, ":");
    while (true) {
      if (cut_off(controllers, ",") == controller) return std::string(rest);
      if (controllers.empty()) break;
    }
  }
  return "";
}

void lower(FreeMemory& least, double bytes, const std::string& limit) {
  const Bytes there(std::max(0.0, bytes));
  if (there < least.bytes) least = {there, limit};
}

void lower_to_cgroup(FreeMemory& least, const fs::path& folder, const CgroupFiles& files,
                     const std::string& name) {
  const auto limit = number_in(folder / files.limit);
  const auto usage = number_in(folder / files.usage);
  if (!limit || !usage) return;
  double cached = 0;
  for (const std::string_view key : files.cached) {
    cached += number_behind(folder / "memory.stat", key).value_or(0);
  }
  lower(least, *limit - std::max(0.0, *usage - cached), "the cgroup " + name);
}

// Applies the limits of the process's cgroup and of all its ancestors. Skips missing folders: in a
// container, /proc may show a path of the host that does not exist in the container.
void lower_to_cgroups(FreeMemory& least, const fs::path& root) {
  for (const CgroupFiles& files : versions()) {
    const std::string own = cgroup_of(root, files.controller);
    if (own.empty()) continue;
    for (fs::path name = own;; name = name.parent_path()) {
      lower_to_cgroup(least, root / files.mount / name.relative_path(), files, name.string());
      if (!name.has_relative_path()) break;
    }
  }
}

void lower_to_address_space(FreeMemory& least, const fs::path& root) {
  const auto limit = number_behind(root / "proc/self/limits", "Max address space");
  const auto pages = number_in(root / "proc/self/statm");
  if (!limit || !pages) return;
  lower(least, *limit - *pages * static_cast<double>(::sysconf(_SC_PAGESIZE)), "ulimit -v");
}

}  // namespace

FreeMemory free_memory(const fs::path& root) {
  FreeMemory least{Bytes(std::numeric_limits<double>::infinity()), ""};
  if (const auto kib = number_behind(root / "proc/meminfo", "MemAvailable:")) {
    lower(least, *kib * 1024, "this machine");
  }
  lower_to_cgroups(least, root);
  lower_to_address_space(least, root);
  return least;
}

}  // namespace tpsim
