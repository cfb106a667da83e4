// Follows a launch script to the Python program that it starts. If the program creates its
// configuration with a framework whose recipes tpsim runs, the program runs with its arguments.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/text.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostProgramBytes = std::size_t{4} << 20;
constexpr int kParents = 4;  // folders above the script in which its program may be

// Whether a line of the text imports one of the frameworks.
bool imports_framework(std::string_view text) {
  constexpr std::string_view kPackages =
      "olmo_core olmo_core.* megatron.bridge megatron.bridge.* nemo nemo.* nemo_run torchtitan "
      "torchtitan.*";
  while (!text.empty()) {
    std::string_view line = trimmed(cut_off(text, "\n"));
    const bool is_import = line.starts_with("import ") || line.starts_with("from ");
    if (!is_import) continue;
    line.remove_prefix(line.find(' ') + 1);
    if (matches_any(line.substr(0, line.find_first_of(" ,\r")), kPackages)) return true;
  }
  return false;
}

// Returns the path of the program's file: "torchtitan/train.py" for the module "torchtitan.train".
std::string file_of(const LaunchCommand& command) {
  std::string name = without_marks(command.program);
  if (name.ends_with(".py")) return name;
  std::replace(name.begin(), name.end(), '.', '/');
  return name + ".py";
}

// Returns the places where the program may be: at its path, seen from the script's folder and the
// folders above it, and in a checkout, where the path may lack its first folders.
std::vector<fs::path> places_of(const std::string& name, const LaunchFile& script,
                                const ImportInputs& inputs) {
  std::vector<fs::path> places;
  fs::path folder = fs::path(path_of(script)).parent_path();
  for (int i = 0; i <= kParents; ++i) {
    places.push_back(folder / name);
    folder /= "..";
  }
  for (const std::string& checkout : inputs.checkouts) {
    for (std::string_view rest = name; !rest.empty(); cut_off(rest, "/")) {
      if (rest.starts_with('/')) continue;
      for (const char* sources : {"", "src"}) {
        places.push_back(fs::path(checkout) / sources / std::string(rest));
      }
    }
  }
  return places;
}

std::optional<LaunchFile> started_program(const LaunchCommand& command, const LaunchFile& script,
                                          const ImportInputs& inputs) {
  if (command.program.empty() || command.program.find(' ') != std::string::npos) return {};
  for (const fs::path& place : places_of(file_of(command), script, inputs)) {
    std::error_code code;
    if (!fs::is_regular_file(place, code)) continue;
    Result<std::string> text = read_file(place, kMostProgramBytes);
    if (!text.ok()) continue;
    return LaunchFile{place.filename().string(), *std::move(text), place.string()};
  }
  return {};
}

// Returns the program's arguments. "$@" is an empty word if the script has no arguments.
std::vector<std::string> arguments_of(const LaunchCommand& command) {
  std::vector<std::string> words;
  for (const std::string& word : command.words) {
    if (!word.empty()) words.push_back(without_marks(word));
  }
  return words;
}

}  // namespace

std::optional<Result<ImportedPlan>> import_started_recipe(const LaunchCommand& command,
                                                          const LaunchFile& script,
                                                          const ImportInputs& inputs) {
  if (!inputs.runs_code) return {};
  const std::optional<LaunchFile> program = started_program(command, script, inputs);
  if (!program || !imports_framework(program->text)) return {};
  ImportInputs own = inputs;
  // Values without '.' and '-' are variables of the script, which has used them.
  std::erase_if(own.given, [](const auto& one) { return !names_setting(one.first); });
  if (own.gpus == 0) own.gpus = command.size.nodes * command.size.gpus_per_node;
  const std::vector<std::string> words = arguments_of(command);
  Result<ImportedPlan> plan = import_recipe(*program, own, &words);
  if (plan.ok()) add_environment(command, *plan);
  return plan;
}

Status check_started_program(const LaunchCommand& command, const LaunchFile& script,
                             const ImportInputs& inputs) {
  Status is_megatrons = check_program(command, path_of(script));
  if (is_megatrons.ok() || !inputs.runs_code) return is_megatrons;
  if (started_program(command, script, inputs)) return is_megatrons;
  return bad_input(fmt::format("starts {}, which does not exist near the script or in a checkout",
                               without_marks(command.program)),
                   path_of(script),
                   "add --checkout DIR with the version of the framework that has the file");
}

Error with_recipe_advice(Error error, const std::string& program, const ImportInputs& inputs) {
  if (inputs.runs_code || program.empty() || program.find("pretrain") != std::string::npos) {
    return error;
  }
  error.hint +=
      fmt::format("{}if {} runs a recipe of Megatron-Bridge or NeMo, add --run --checkout DIR",
                  error.hint.empty() ? "" : "; ", without_marks(program));
  return error;
}

}  // namespace tpsim
