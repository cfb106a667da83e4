// A text file that the user gives, or an exported file: name, text, and path for error messages.
#pragma once

#include <string>

namespace tpsim {

struct LaunchFile {
  std::string name;
  std::string text;
  std::string path = {};  // the path as given, for errors; empty: use the name
};
inline const std::string& path_of(const LaunchFile& file) {
  return file.path.empty() ? file.name : file.path;
}

}  // namespace tpsim
