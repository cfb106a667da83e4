#include "kernels/cuda/runtime/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace tpsim {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(':'), list.size());
    if (end > 0) parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

// Adds folder/nvidia/*/lib, the layout of NVIDIA's Python wheels.
void add_wheel_folders(const fs::path& site, std::vector<std::string>& folders) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& package : fs::directory_iterator(site / "nvidia", ignored)) {
    const fs::path lib = package.path() / "lib";
    if (fs::is_directory(lib, ignored)) found.push_back(lib.string());
  }
  std::sort(found.begin(), found.end());
  folders.insert(folders.end(), found.begin(), found.end());
}

void add_environment_of_python(const fs::path& root, std::vector<std::string>& folders) {
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator(root / "lib", ignored)) {
    add_wheel_folders(version.path() / "site-packages", folders);
  }
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders = split(environment("TPSIM_LIBRARY_PATH"));
  const std::string usual = "/usr/local/cuda", home = environment("CUDA_HOME");
  if (!home.empty() && home != usual) folders.push_back(home + "/lib64");
  folders.push_back(usual + "/lib64");
  for (const std::string& site : split(environment("PYTHONPATH"))) add_wheel_folders(site, folders);
  if (const std::string root = environment("VIRTUAL_ENV"); !root.empty()) {
    add_environment_of_python(root, folders);
  }
  return folders;
}

Result<SharedLibrary> SharedLibrary::open(const std::string& what,
                                          const std::vector<std::string>& names) {
  std::vector<std::string> paths = names;
  const std::vector<std::string> folders = library_folders();
  for (const std::string& folder : folders) {
    for (const std::string& name : names) paths.push_back(folder + "/" + name);
  }
  for (const std::string& path : paths) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return SharedLibrary(path, handle);
  }
  return Error{ErrorKind::kMissing,
               fmt::format("{} is not installed: there is no {} on the loader's path or in {}",
                           what, fmt::join(names, " or "), fmt::join(folders, ", ")),
               "", "install it, or set TPSIM_LIBRARY_PATH to its folder"};
}

Result<void*> SharedLibrary::address_of(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (address != nullptr) return address;
  return Error{ErrorKind::kMissing,
               fmt::format("{} is too old: it does not have the function {}", path_, symbol), "",
               "set TPSIM_LIBRARY_PATH to the folder of a newer version"};
}

}  // namespace tpsim
