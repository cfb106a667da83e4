// tpsim gui: hands its options on to the program with the window, which stands beside this one and
// is the only one that needs Dear ImGui and GLFW.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/values.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array kHandedOn = {Opt::kModel,       Opt::kCluster,    Opt::kGpus,
                                  Opt::kGlobalBatch, Opt::kScreenshot, Opt::kScript,
                                  Opt::kWindowSize,  Opt::kTheme,      Opt::kMeasured};

Result<std::vector<std::string>> words_of(const Arguments& arguments, const fs::path& program) {
  std::vector<std::string> words = {program.string()};
  if (!arguments.positional.empty()) words.push_back(arguments.positional);
  constexpr std::array<std::string_view, 2> kThemes = {"light", "dark"};
  TPSIM_TRY(const auto themes, chosen_names(arguments, Opt::kTheme, kThemes));
  TPSIM_TRY_STATUS(check_single(arguments, Opt::kTheme, themes.empty() ? 1 : themes.size()));
  for (const Opt opt : {Opt::kGpus, Opt::kGlobalBatch}) {
    if (arguments.has(opt)) TPSIM_TRY_STATUS(integer_of(arguments, opt, 1));
  }
  for (const Opt opt : kHandedOn) {
    if (!arguments.has(opt)) continue;
    words.emplace_back(row_of(opt).name);
    words.push_back(*arguments[opt]);
  }
  return words;
}

}  // namespace

Status run_gui(const Arguments& arguments, const Terminal&) {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code).parent_path() / "tpsim-gui";
  if (!fs::exists(program, code)) {
    return Error{
        ErrorKind::kMissing, "the window is not built here", "tpsim gui",
        "tools/install_packages.sh --full installs what it needs; then configure and build "
        "again. tpsim plan --plot out.svg draws without it"};
  }
  TPSIM_TRY(std::vector<std::string> words, words_of(arguments, program));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return Error{ErrorKind::kMissing, std::string("cannot be started: ") + std::strerror(errno),
               program.string(), ""};
}

}  // namespace tpsim
