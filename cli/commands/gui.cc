// tpsim gui: replaces this process by the GUI program. Options of the window are handed on, and the
// options of `tpsim plan` become a saved view.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "gui/views/saved_view.h"

namespace tpsim::cli {
namespace {

namespace fs = std::filesystem;

constexpr Opt kOfWindow[] = {"--screenshot", "--script", "--size", "--theme", "--measured"};
// Inputs that the window has fields for.
constexpr Opt kOfTopBar[] = {"--model", "--cluster", "--gpus", opt_of(Setting::kGlobalBatch)};

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

// Whether an option is given that neither the window nor its top bar has.
bool asks_like_plan(const Arguments& arguments) {
  const auto is_in = [](const auto& some, Opt opt) {
    return std::find(std::begin(some), std::end(some), opt) != std::end(some);
  };
  return std::any_of(option_rows().begin(), option_rows().end(), [&](const OptionRow& row) {
    return arguments.has(row.opt) && takes(Command::kPlan, row.opt) && !is_in(kOfWindow, row.opt) &&
           !is_in(kOfTopBar, row.opt) && row.opt != "--quiet" && row.opt != "--color";
  });
}

// Returns the inputs that `tpsim plan` would have with these options, as a saved view.
Result<JsonValue> view_of(const Arguments& arguments) {
  TPSIM_TRY(const std::optional<PlanFile> file, read_plan_argument(arguments));
  TPSIM_TRY(const ScenarioRequest scenario, scenario_request(arguments, file));
  TPSIM_TRY(const SearchRequest request, search_request(arguments));
  TPSIM_TRY(const NamedScenario named, app::load_scenario(scenario, request));
  TPSIM_TRY(const SearchSpace space, search_space(request, named.scenario, file));
  if (!named.allocation.empty()) {
    return bad_input("the window cannot show the hosts of a plan yet", arguments.positional,
                     "tpsim simulate and explain read the plan");
  }
  const PlanFile shown = plan_file_of(named, file ? file->plan : Plan{});
  gui::AppState state;
  show_plan(shown, state);
  gui::Choice& choice = state.choice;
  choice.gpus = space.gpus;
  choice.global_batch = space.global_batch;
  choice.limits = space;
  choice.ignores_stack_limits = arguments.has("--ignore-stack-limits");
  // The window opens with the file's plan, unless options ask for another layout.
  if (!file || space.asked != space_around(file->plan).asked) state.plan.reset();
  if (file) return gui::view_to_json(state, shown);
  return gui::view_to_json(state, std::nullopt);
}

// Returns the path of a file without a name, which this process and its program after exec() hold.
Result<std::string> unnamed_file(const std::string& text) {
  const int file = memfd_create("tpsim-view", 0);
  const auto size = static_cast<ssize_t>(text.size());
  if (file < 0 || write(file, text.data(), text.size()) != size) {
    return Error{ErrorKind::kMissing, std::string("cannot be written: ") + std::strerror(errno),
                 "the view for the window", ""};
  }
  return "/proc/self/fd/" + std::to_string(file);
}

Result<std::vector<std::string>> words_of(const Arguments& arguments, const fs::path& program) {
  std::vector<std::string> words = {program.string()};
  constexpr std::array<std::string_view, 2> kThemes = {"light", "dark"};
  TPSIM_TRY(const auto themes, chosen_names(arguments, "--theme", kThemes));
  TPSIM_TRY_STATUS(check_single(arguments, "--theme", themes.empty() ? 1 : themes.size()));
  const auto hand_on = [&](Opt opt) {
    if (!arguments.has(opt)) return;
    words.emplace_back(row_of(opt).name);
    words.push_back(*arguments[opt]);
  };
  for (const Opt opt : kOfWindow) hand_on(opt);
  if (asks_like_plan(arguments)) {
    TPSIM_TRY(const JsonValue view, view_of(arguments));
    TPSIM_TRY(std::string file, unnamed_file(to_text(view)));
    words.push_back(std::move(file));
    return words;
  }
  for (const Opt opt : {Opt("--gpus"), opt_of(Setting::kGlobalBatch)}) {
    if (arguments.has(opt)) TPSIM_TRY_STATUS(integer_of(arguments, opt, 1));
  }
  for (const Opt opt : kOfTopBar) hand_on(opt);
  if (!arguments.positional.empty()) words.push_back(arguments.positional);
  return words;
}

}  // namespace

Result<Answer> run_gui(const Arguments& arguments, const Terminal&) {
  TPSIM_TRY(const fs::path program, gui_program("tpsim gui"));
  TPSIM_TRY(std::vector<std::string> words, words_of(arguments, program));
  execv(program.c_str(), argv_of(words).data());
  return not_started(program, errno);
}

}  // namespace tpsim::cli
