// A text file that a user has: its name, its text, and how errors call it.
#pragma once

#include <string>

namespace tpsim {

struct LaunchFile {
  std::string name;
  std::string text;
  std::string path = {};  // as its owner calls it, for errors; empty: as `name` says
};
inline const std::string& path_of(const LaunchFile& file) {
  return file.path.empty() ? file.name : file.path;
}

}  // namespace tpsim
