// The tree keeps its rules, and the scan detects each violation.
#include "tests/layers/house_rules.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

namespace tpsim {
namespace {

namespace fs = std::filesystem;

// A small tree on disk that keeps every rule, until a test adds a violation.
class PlantedTree {
 public:
  PlantedTree() : root_(fs::temp_directory_path() / ("tpsim_layers_" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    plant("core/units.h",
          "#pragma once\nnamespace tpsim {\nenum class Unit { kByte };\n"
          "const char* name_of(const Unit& unit);\n}  // namespace tpsim\n");
    plant("sim/price.cc", "#include <vector>\n#include \"core/units.h\"\n");
    plant("sim/CMakeLists.txt", "add_library(sim price.cc)\n");
    plant("core/README.md", "May include: nothing.\n\nOpen first: `units.h`\n");
    plant("sim/README.md", "May include: `core`\n\nOpen first: `price.cc`\n");
    plant("sim/memory/README.md", "May include: `core`\n\nOpen first: `peak.h`\n");
    plant("sim/memory/peak.h", "#pragma once\n");
  }
  ~PlantedTree() { fs::remove_all(root_); }
  PlantedTree(const PlantedTree&) = delete;
  PlantedTree& operator=(const PlantedTree&) = delete;

  void plant(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string broken() const { return to_string(broken_rules(root_)); }

 private:
  fs::path root_;
};

struct Fault {
  const char* name;
  fs::path path;
  std::string text;
  std::string expected;  // a part of the one message
};

}  // namespace

TEST_CASE("the source tree keeps the house rules") {
  INFO(to_string(broken_rules(TPSIM_SOURCE_DIR)));
  CHECK(broken_rules(TPSIM_SOURCE_DIR).empty());
}

TEST_CASE("a tree that keeps the rules has no findings") { CHECK(PlantedTree().broken().empty()); }

TEST_CASE("every planted fault is found, and reported with its place") {
  const Fault fault = GENERATE(values<Fault>({
      {"upward include", "core/a.h", "\n#include \"sim/price.h\"\n",
       "core/a.h:2: core/ includes \"sim/price.h\" from a folder above it"},
      {"upward include by one step", "sim/a.h", "#include \"plans/search/search.h\"\n",
       "sim/a.h:1"},
      {"sideways include", "sim/a.h", "#include \"profiler/timer.h\"\n",
       "meet only in the profile"},
      {"sideways include, the other way", "profiler/a.h", "#include \"sim/step/simulate.h\"\n",
       "profiler/a.h:1"},
      {"computing device in the planner", "plans/a.h", "#include \"kernels/cpu/cpu_device.h\"\n",
       "needs a device"},
      {"include by a relative path", "core/a.h", "#include \"../sim/price.h\"\n",
       "not a path from the root"},
      {"include by bare name", "core/a.h", "#include \"units.h\"\n", "not a path from the root"},
      {"include spelled with spaces", "core/a.h", "  #  include  \"cli/options/table.h\"\n",
       "core/a.h:1"},
      {"dimension by position", "sim/a.h", "return key.dims[1];\n", "use dim_of()"},
      {"algorithm that the page's compiler lacks", "sim/a.h", "std::ranges::sort(rows);\n",
       "sim/a.h:1: std::ranges"},
      {"JSON outside core", "sim/a.h", "#include <nlohmann/json.hpp>\n", "JSON outside core/"},
      {"software part in a folder that reads lowered programs", "sim/memory/a.h",
       "bool compiles() { return stack.parts.compile; }\n", "sim/memory/a.h:1: a software part"},
      {"software part in a layer's price", "sim/a.h",
       "bool clips() { return scenario.stack.training.clip_gradients; }\n",
       "sim/a.h:1: a software part"},
      {"feature macro", "sim/a.h", "#ifdef TPSIM_CUDA\n#endif\n", "sim/a.h:1: a feature"},
      {"vague folder", "sim/utils/a.h", "", "sim/utils: a folder name"},
      {"source outside the layers", "extras/a.cc", "", "extras/a.cc: a source outside"},
      {"overlong file", "sim/a.h", std::string(401, '\n'), "sim/a.h: 401 lines"},
      {"overlong script", "tests/a.py", std::string(401, '\n'), "tests/a.py: 401 lines"},
      {"folder of scripts without a README", "tools/release/a.py", "",
       "tools/release/README.md: a folder of"},
      {"globbed sources", "sim/x.cmake", "file(  GLOB sources *.cc)\n", "sim/x.cmake: GLOB"},
      {"source that nothing builds", "sim/a.cc", "", "sim/a.cc: no CMakeLists.txt names"},
      {"type of a name that is taken", "sim/a.h", "namespace tpsim {\nstruct Unit {\n};\n}\n",
       "sim/a.h:2: tpsim::Unit is in core/units.h too"},
      {"alias of a name that is taken", "sim/a.h", "namespace tpsim { using Unit = int; }\n",
       "sim/a.h:1: tpsim::Unit"},
      {"function that differs in names alone", "sim/a.h",
       "namespace tpsim {\nconst char* name_of(const Unit& u);\n}\n",
       "sim/a.h:2: tpsim::name_of(const Unit&) is in core/units.h too"},
      {"folder without a README", "plans/a.h", "\n",
       "plans/README.md: a folder of sources without"},
      {"folder inside one without a README", "sim/step/a.h", "\n",
       "sim/step/README.md: a folder of"},
      {"include that the README does not list", "sim/a.h", "#include \"kernels/ops.h\"\n",
       "sim/a.h:1: sim/README.md does not list kernels"},
      {"README without a list", "core/README.md", "Open first: `units.h`\n",
       "core/README.md: no line begins with \"May include:\""},
      {"README that names no file", "core/README.md", "May include: nothing.\n",
       "core/README.md: no line \"Open first:\""},
      {"README that names a file that is gone", "core/README.md",
       "May include: nothing.\nOpen first: `gone.h`\n", "core/README.md: gone.h is not a file"},
      {"README that lists a folder that is gone", "core/README.md",
       "May include: `gone`\nOpen first: `units.h`\n", "core/README.md: gone is not a folder"},
      {"long README", "core/README.md",
       "May include: nothing.\nOpen first: `units.h`\n" + std::string(14, '\n'),
       "core/README.md: more than 15 lines"},
      {"folders in a circle", "core/README.md", "May include: `sim`\nOpen first: `units.h`\n",
       "the folders that it lists include it in turn"},
      {"source that only a comment names", "core/a.cc", "", "core/a.cc: no CMakeLists.txt"},
  }));
  const PlantedTree tree;
  tree.plant("core/CMakeLists.txt", "# a.cc is gone\n");
  tree.plant(fault.path, fault.text);
  INFO(fault.name);
  const std::string broken = tree.broken();
  CHECK_THAT(broken, Catch::Contains(fault.expected));
  CHECK(std::count(broken.begin(), broken.end(), '\n') == 1);
}

TEST_CASE("declarations that C++ distinguishes may share a name") {
  const PlantedTree tree;
  tree.plant("sim/a.h", R"(
namespace tpsim {
struct Unit;                           // announced, defined elsewhere
class Price {
  enum class Unit { kCent };           // a class's own
  const char* name_of(const Unit& unit);
};
const char* name_of(Price price);      // other parameters
const char* name_of(const Unit& unit, int digits = most({1, 2}));
template <class T>
const char* name_of(const Unit& unit);
inline const char* Price::name_of(const Unit& unit) { return "Unit"; }
namespace gui {
struct Unit {};
const char* name_of(const tpsim::Unit& unit);
}  // namespace gui
namespace {
struct Unit {};
}  // namespace
}  // namespace tpsim
)");
  INFO(tree.broken());
  CHECK(tree.broken().empty());
}

TEST_CASE("hidden folders and build folders are skipped") {
  const PlantedTree tree;
  tree.plant("build/release/x.cc", "");
  tree.plant(".cache/x.cc", "");
  tree.plant("elsewhere/CMakeCache.txt", "");
  tree.plant("elsewhere/CMakeFiles/probe.cc", "");
  CHECK(tree.broken().empty());
}

}  // namespace tpsim
