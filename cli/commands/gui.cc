// tpsim gui: replaces this process by the GUI program, with the same options. The GUI program also
// draws PNG files.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/options/values.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "gui/draw/drawing.h"

namespace tpsim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kHandedOn = {
    Opt::kModel,      Opt::kCluster, Opt::kGpus,       opt_of(Setting::kGlobalBatch),
    Opt::kScreenshot, Opt::kScript,  Opt::kWindowSize, Opt::kTheme,
    Opt::kMeasured};

Result<fs::path> gui_program(const char* command) {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code).parent_path() / "tpsim-gui";
  if (fs::exists(program, code)) return program;
  return Error{ErrorKind::kMissing, "this build has no GUI", command,
               "run tools/install_packages.sh --full, then configure and build again; tpsim plan "
               "--plot out.svg needs no GUI"};
}

// Returns the words as a null-terminated argv, valid as long as `words` is.
std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

Error not_started(const fs::path& program, int code) {
  return Error{ErrorKind::kMissing, std::string("cannot be started: ") + std::strerror(code),
               program.string(), ""};
}

Result<std::vector<std::string>> words_of(const Arguments& arguments, const fs::path& program) {
  std::vector<std::string> words = {program.string()};
  if (!arguments.positional.empty()) words.push_back(arguments.positional);
  constexpr std::array<std::string_view, 2> kThemes = {"light", "dark"};
  TPSIM_TRY(const auto themes, chosen_names(arguments, Opt::kTheme, kThemes));
  TPSIM_TRY_STATUS(check_single(arguments, Opt::kTheme, themes.empty() ? 1 : themes.size()));
  for (const Opt opt : {Opt::kGpus, opt_of(Setting::kGlobalBatch)}) {
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
  TPSIM_TRY(const fs::path program, gui_program("tpsim gui"));
  TPSIM_TRY(std::vector<std::string> words, words_of(arguments, program));
  execv(program.c_str(), argv_of(words).data());
  return not_started(program, errno);
}

Status check_png_program() {
  TPSIM_TRY_STATUS(gui_program("--plot"));
  return Ok{};
}

Status write_png_of(const gui::Drawing& drawing, const std::string& path) {
  TPSIM_TRY(const fs::path program, gui_program("--plot"));
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  const fs::path shapes = folder.path() / "drawing.json";
  TPSIM_TRY_STATUS(write_file_atomically(shapes, to_text(gui::json_of(drawing))));
  std::vector<std::string> words = {program.string(), "--drawing", shapes.string(), "--screenshot",
                                    path};
  pid_t child = 0;
  const int code =
      posix_spawn(&child, program.c_str(), nullptr, nullptr, argv_of(words).data(), environ);
  if (code != 0) return not_started(program, code);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok{};
  return bad_input("was not written: tpsim-gui failed", path);
}

}  // namespace tpsim::cli
