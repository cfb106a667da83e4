// Lines of code that a reader of one file may have to know: of all files that its includes reach,
// and of the sources next to these headers. Contracts end the walk: trace.h, which the reference
// model implements in layer_tracer.cc, and commands.h.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace tpsim {
namespace {

class Closure {
 public:
  void reach(const std::string& path) {
    std::ifstream file(std::filesystem::path(TPSIM_SOURCE_DIR) / path);
    if (!file || !seen_.insert(path).second) return;
    static const std::regex include(R"(^#include \"([^\"]+)\")");
    for (std::string line; std::getline(file, line); ++lines_) {
      std::smatch match;
      if (line.starts_with("#include") && std::regex_search(line, match, include)) reach(match[1]);
    }
    if (path.ends_with(".h")) reach(path.substr(0, path.size() - 1) + "cc");
  }
  std::size_t lines() const { return lines_; }

 private:
  std::set<std::string> seen_;
  std::size_t lines_ = 0;
};

}  // namespace

TEST_CASE("predictions, searches and tpsim plan do not reach the code of other answers") {
  for (const auto& [path, most] :
       {std::pair("sim/step/simulate.h", 15'000U), std::pair("plans/search/search.h", 20'750U),
        std::pair("cli/commands/plan.cc", 34'000U)}) {
    Closure closure;
    closure.reach(path);
    INFO(path << " reaches " << closure.lines() << " lines");
    CHECK(closure.lines() > 10'000);
    CHECK(closure.lines() < most);
  }
}

}  // namespace tpsim
