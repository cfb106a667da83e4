// A text file of the user: name, text, and path for error messages.
#pragma once

#include <string>

namespace tpsim {

struct LaunchFile {
  std::string name;
  std::string text;
  std::string path = {};  // as the user gave it, for errors; empty: the name
};
inline const std::string& path_of(const LaunchFile& file) {
  return file.path.empty() ? file.name : file.path;
}

}  // namespace tpsim
