// Every command in tests/cli/golden prints exactly the recorded output. After an intended change,
// tools/regenerate_golden.sh records it again; review the diff.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/cli/golden_file.h"

namespace tpsim::test {
namespace {

namespace fs = std::filesystem;

const fs::path kHere = TPSIM_SOURCE_DIR "/tests/cli";

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// An empty folder in which commands run; `files` links to the data of the tests.
class RunFolder {
 public:
  RunFolder() : path_(fs::temp_directory_path() / ("tpsim_golden_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
    fs::create_directory_symlink(kHere / "files", path_ / "files");
  }
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<fs::path> golden_paths() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kHere / "golden")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool regenerates() { return std::getenv("TPSIM_REGENERATE_GOLDEN") != nullptr; }

}  // namespace

TEST_CASE("every golden command prints what its file shows") {
  const std::vector<fs::path> paths = golden_paths();
  REQUIRE_FALSE(paths.empty());
  for (const fs::path& path : paths) {
    const RunFolder folder;
    GoldenFile file = parse_golden(text_of(path));
    CHECK_FALSE(file.commands.empty());
    for (GoldenCommand& one : file.commands) {
      const std::string printed = run_golden(one.command, folder.path());
      INFO(path.filename().string() << ": $ " << one.command);
      if (!regenerates()) CHECK(printed == one.printed);
      one.printed = printed;
    }
    if (regenerates()) std::ofstream(path) << to_string(file);
  }
}

TEST_CASE("a golden file reads back as it was written") {
  const std::string text = "about this\n$ a --b\nline 1\nline 2\n[exit 2]\n$ c\n$ d\nlast\n";
  const GoldenFile file = parse_golden(text);
  REQUIRE(file.commands.size() == 3);
  CHECK(file.comment == "about this\n");
  CHECK(file.commands[0].command == "a --b");
  CHECK(file.commands[0].printed == "line 1\nline 2\n[exit 2]\n");
  CHECK(file.commands[1].printed.empty());
  CHECK(to_string(file) == text);
}

TEST_CASE("only output that differs between two runs of a command is normalized") {
  const RunFolder folder;
  const auto printed = [&](const std::string& text) {
    return run_golden("printf '%s' '" + text + "'", folder.path());
  };
  CHECK(printed("9 considered in 4.251 s") == "9 considered in TIME");
  CHECK(printed("\"seconds\": 0.00123}") == "\"seconds\": TIME}");
  CHECK(printed("1.23456789 and 12.5 s") == "1.23457 and 12.5 s");
  CHECK(run_golden("exit 3", folder.path()) == "[exit 3]\n");
}

}  // namespace tpsim::test
