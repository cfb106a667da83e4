// Reads every source and CMake file below a root once, line by line.
#include "tests/layers/house_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

#include "tests/layers/folder_readmes.h"
#include "tests/layers/header_names.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

// Layers from bottom to top. "generated" contains the version header that CMake writes.
constexpr std::array<std::string_view, 22> kLayers = {
    "core",      "kernels",   "ranks",   "reference_model", "profiler", "costs", "lowering", "sim",
    "plans",     "campaigns", "formats", "frameworks",      "evidence", "app",   "gui",      "page",
    "generated", "devices",   "cli",     "python",          "tools",    "tests"};
constexpr std::array<std::string_view, 5> kVagueNames = {"common", "utils", "util", "misc",
                                                         "helpers"};
constexpr std::array<std::string_view, 4> kSourceExtensions = {".h", ".cc", ".cuh", ".cu"};
constexpr std::size_t kLongestFile = 400;

template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

// Returns the index in kLayers; nothing for other names.
std::optional<std::size_t> height_of(std::string_view layer) {
  const auto found = std::find(kLayers.begin(), kLayers.end(), layer);
  if (found == kLayers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kLayers.begin());
}

std::string top_folder(const fs::path& path) { return path.begin()->string(); }

// Whether the layer's folders have READMEs with allowed includes. Tests, tools and generated files
// may include all lower layers.
bool has_readmes(std::string_view layer) {
  constexpr std::array<std::string_view, 3> kFree = {"generated", "tools", "tests"};
  return !contains(kFree, layer);
}

// Returns why a file of `layer` may not include "`header`"; empty if allowed.
std::string include_fault(const std::string& layer, const std::string& header) {
  const std::string from = top_folder(header);
  const auto header_height = height_of(from);
  if (from == header || !header_height) {
    return "\"" + header + "\" is not a path from the root of the project";
  }
  if (*header_height > *height_of(layer)) {
    return layer + "/ includes \"" + header + "\" from a folder above it";
  }
  if (layer == "sim" && from == "profiler") {
    return "sim/ and profiler/ meet only in the profile file";
  }
  constexpr std::array<std::string_view, 11> kPlanning = {
      "costs",      "lowering", "sim", "plans", "campaigns", "formats",
      "frameworks", "evidence", "app", "gui",   "page"};
  const bool only_plans = contains(kPlanning, layer);
  for (const std::string_view device :
       {"kernels/cpu/", "kernels/cuda/", "ranks/threads/", "ranks/mpi/", "ranks/nccl/"}) {
    if (only_plans && header.starts_with(device)) {
      return layer + "/ needs a device that computes: \"" + header + "\"";
    }
  }
  return "";
}

// Returns "core/plan.h" for a line that includes it; empty for other lines.
std::string quoted_include(const std::string& line) {
  static const std::regex include(R"(^\s*#\s*include\s*\"([^\"]+)\")");
  if (line.find('#') == std::string::npos) return "";  // most lines
  std::smatch match;
  return std::regex_search(line, match, include) ? match[1].str() : "";
}

// Whether the line reads a dimension of an op by its position. Kernels define the positions.
bool reads_by_position(const std::string& layer, const std::string& line) {
  if (layer == "kernels" || layer == "tests") return false;
  const std::size_t at = line.find("dims[");
  return at != std::string::npos && std::isdigit(static_cast<unsigned char>(line[at + 5])) != 0;
}

// Software parts decide what a lowered layer and lowering/passes/step_habits.h contain. The folders
// that read the results do not read parts. plans/ may vary parts without a look at their values.
bool reads_parts(const std::string& layer, const std::string& line) {
  if (layer != "costs" && layer != "sim" && layer != "plans" && layer != "campaigns") return false;
  if (line.find("stack") == std::string::npos && line.find("arts") == std::string::npos &&
      line.find("Part") == std::string::npos) {
    return false;  // most lines
  }
  static const std::regex fields(R"(\bstack\.parts\.|\btraining\.|\bSoftwareParts\b)");
  static const std::regex names(R"(\bStackPart\b|\bPartValues\b|\bwith_parts\b)");
  const std::string code = line.substr(0, line.find("//"));
  return std::regex_search(code, fields) || (layer != "plans" && std::regex_search(code, names));
}

std::string line_fault(const std::string& layer, const std::string& line) {
  static const std::regex json_include(R"(^\s*#\s*include\s*<nlohmann/)");
  static const std::regex feature_if(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*TPSIM_)");
  if (reads_by_position(layer, line)) return "a dimension by position: use dim_of()";
  if (layer != "tests" && line.find("std::ranges::") != std::string::npos) {
    return "std::ranges: the page's compiler on Debian 12 lacks it";
  }
  if (line.find('#') == std::string::npos) return "";  // most lines
  const std::string header = quoted_include(line);
  if (!header.empty()) return include_fault(layer, header);
  if (layer != "core" && layer != "tests" && std::regex_search(line, json_include)) {
    return "JSON outside core/";
  }
  if (std::regex_search(line, feature_if)) {
    return "a feature chosen by the preprocessor: select source files in CMake";
  }
  return "";
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

bool is_source(const fs::path& path) {
  return contains(kSourceExtensions, path.extension().string());
}

bool is_header(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cuh";
}

bool is_cmake(const fs::path& path) {
  return path.filename() == "CMakeLists.txt" || path.extension() == ".cmake";
}

bool is_passed_over(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with('.') || name == "build" || fs::exists(folder / "CMakeCache.txt");
}

class Scan {
 public:
  explicit Scan(fs::path root) : root_(std::move(root)), readmes_(root_) {}

  std::vector<BrokenRule> broken() && {
    visit(root_);
    for (const fs::path& source : sources_) check_is_built(source);
    for (auto& [path, fault] : readmes_.faults()) report(path, std::move(fault));
    return std::move(broken_);
  }

 private:
  void report(const fs::path& path, std::string rule) {
    broken_.push_back({path.generic_string(), std::move(rule)});
  }

  void visit(const fs::path& folder) {
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      const fs::path path = entry.lexically_relative(root_);
      if (fs::is_directory(entry)) {
        if (is_passed_over(entry)) continue;
        if (contains(kVagueNames, path.filename().string())) {
          report(path, "a folder name that says nothing");
        }
        visit(entry);
      } else if (is_source(entry)) {
        check_source(path);
      } else if (is_cmake(entry)) {
        check_cmake(path);
      } else if (entry.extension() == ".py") {
        check_script(path);
      }
    }
  }

  void check_source(const fs::path& path) {
    const std::string layer = top_folder(path);
    if (!height_of(layer)) return report(path, "a source outside the folders of the project");
    const std::vector<std::string> lines = lines_of(root_ / path);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::string fault = line_fault(layer, lines[i]);
      if (fault.empty() && has_readmes(layer)) fault = readme_fault(path, lines[i]);
      if (fault.empty() && reads_parts(layer, lines[i])) {
        fault = "a software part: read a property that lowering/ computes";
      }
      if (!fault.empty()) report(path.generic_string() + ":" + std::to_string(i + 1), fault);
    }
    check_length(path, lines);
    if (is_header(path)) {
      check_names(path, lines);
    } else {
      sources_.push_back(path);
    }
  }

  void check_length(const fs::path& path, const std::vector<std::string>& lines) {
    if (lines.size() <= kLongestFile) return;
    report(path, std::to_string(lines.size()) + " lines; " + std::to_string(kLongestFile) +
                     " are the most a reader can hold");
  }

  // A script has a README in its folder. The includes that the README lists are those of C++.
  void check_script(const fs::path& path) {
    check_length(path, lines_of(root_ / path));
    const std::string layer = top_folder(path);
    if (layer != "python" && layer != "tools") return;
    const std::string fault =
        readmes_.include_fault(path.parent_path().generic_string(), path.generic_string());
    if (!fault.empty()) report(path, fault);
  }

  // Checked for every line, so that a folder without includes needs a README too.
  std::string readme_fault(const fs::path& path, const std::string& line) {
    const std::string header = quoted_include(line);
    const std::string folder = folder_of(path);
    return readmes_.include_fault(folder, header.empty() ? path.generic_string() : header);
  }

  // Detects headers that give one name to different things. No compiler notices if no source
  // includes both, and the linker then picks either. Excludes the emulated GPU's headers, which
  // replace CUDA's.
  void check_names(const fs::path& path, const std::vector<std::string>& lines) {
    if (path.generic_string().starts_with("tests/emulated_gpu/")) return;
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    for (const HeaderName& one : header_names(text)) {
      const auto [first, is_new] = names_.emplace(one.name, path);
      if (is_new || first->second == path) continue;
      report(path.generic_string() + ":" + std::to_string(one.line),
             one.name + " is in " + first->second.generic_string() + " too");
    }
  }

  void check_cmake(const fs::path& path) {
    static const std::regex glob(R"(\bfile\s*\(\s*GLOB\b.*\*\.(c|h))", std::regex::icase);
    static const std::regex word(R"([^\s()\"]+)");
    for (const std::string& line : lines_of(root_ / path)) {
      if (std::regex_search(line, glob)) report(path, "GLOB: list sources by name");
      const std::string code = line.substr(0, line.find('#'));
      for (std::sregex_iterator it(code.begin(), code.end(), word), end; it != end; ++it) {
        listed_.insert((path.parent_path() / it->str()).generic_string());
      }
    }
  }

  // A source that is missing in CMake is never compiled, and its tests never run.
  void check_is_built(const fs::path& source) {
    if (!listed_.contains(source.generic_string()))
      report(source, "no CMakeLists.txt names this source");
  }

  fs::path root_;
  FolderReadmes readmes_;
  std::vector<fs::path> sources_;
  std::map<std::string, fs::path> names_;  // of all headers -> the first header with the name
  std::set<std::string> listed_;  // every word of every CMake file, as a path from the root
  std::vector<BrokenRule> broken_;
};

}  // namespace

std::vector<BrokenRule> broken_rules(const fs::path& root) { return Scan(root).broken(); }

std::string to_string(const std::vector<BrokenRule>& broken) {
  std::string text;
  for (const BrokenRule& one : broken) text += one.where + ": " + one.rule + "\n";
  return text;
}

}  // namespace tpsim
