// Reads the plan of a script: chooses among its training commands, and asks for values that the
// script does not state if the plan depends on them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/model/model_json.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/left_settings.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

using Files = std::vector<LaunchFile>;
namespace fs = std::filesystem;

Result<ImportedPlan> plan_of_command(const Framework& framework, LaunchCommand command,
                                     const LaunchFile& file, const Files& files,
                                     const ImportInputs& inputs) {
  if (!command.variables.empty()) {
    command.program = path_of(file);  // MLPerf's folder names identify the benchmark
    if (const TrainingProgram* program = program_of(command.variables)) {
      return import_program(*program, command.variables, &command, file, inputs);
    }
  }
  if (auto plan = import_started_recipe(command, file, inputs)) return *std::move(plan);
  if (const TrainingProgram* program = program_of(command)) {
    return import_program(*program, settings_of_words(command.words), &command, file, inputs);
  }
  add_given_options(inputs, command);
  if (is_trainer_command(command)) return import_trainer_command(command, file, inputs);
  if (!inputs.more.empty()) {
    return bad_input("cannot be combined with the script, which does not name a configuration file",
                     path_of(inputs.more.front()),
                     "import the configuration files without the script");
  }
  return framework.read_command(std::move(command), file, files, inputs);
}

// Notes files that are read in place of paths on another machine: "PATH: OTHER".
std::string replaced_note(const std::vector<std::string>& replaced) {
  return fmt::format("paths that do not exist are read from the script's own repository: {}",
                     fmt::join(replaced, ", "));
}

// Whether a reader has rules for the command's program. Others may convert weights, or generate.
bool is_readable(const LaunchCommand& command) {
  return program_of(command) != nullptr || is_trainer_command(command) ||
         check_program(command, "").ok();
}

// Reads commands of one script.
class ScriptReader {
 public:
  ScriptReader(const Framework& framework, const LaunchFile& file, const Files& files,
               const ImportInputs& inputs, const ShellScript& script)
      : framework_(framework), file_(file), files_(files), inputs_(inputs), script_(script) {}

  Result<ImportedPlan> plan_of(LaunchCommand command) const {
    ImportInputs own = inputs_;
    std::vector<std::string> replaced;
    own.open = [&, folder = command.folder.empty() ? script_.folder : command.folder](
                   const std::string& name) -> Result<std::string> {
      const std::string place = plain_path((fs::path(folder) / name).string());
      const auto written = script_.files.find(place);
      if (written != script_.files.end()) return written->second;
      if (!inputs_.open) return bad_input("does not exist", name);
      for (const std::string& one : {place, name}) {
        if (Result<std::string> text = inputs_.open(one); text.ok()) return text;
      }
      return of_same_repository(name, replaced);
    };
    Result<ImportedPlan> plan =
        located(file_, plan_of_command(framework_, std::move(command), file_, files_, own));
    if (plan.ok() && !replaced.empty()) plan->notes.push_back(replaced_note(replaced));
    return plan;
  }

  // Returns the plan of a command that may be wrong. Its left settings are not reported.
  Result<ImportedPlan> tried(LaunchCommand command) const {
    ImportInputs alone = inputs_;
    alone.left = nullptr;
    return with_settings_settled(path_of(file_), alone, [&](const ImportInputs& own) {
      return ScriptReader(framework_, file_, files_, own, script_).plan_of(std::move(command));
    });
  }

  // Returns the number of the training command that counts.
  Result<std::size_t> chosen(const std::vector<LaunchCommand>& trainings) const {
    const auto asked = static_cast<std::size_t>(inputs_.command);
    if (asked > trainings.size()) {
      return bad_input(fmt::format("--command {} does not exist", asked), path_of(file_),
                       list_of(trainings));
    }
    if (asked > 0) return asked - 1;
    std::optional<std::size_t> found;
    std::optional<ImportedPlan> plan;
    const auto first = std::find_if(trainings.begin(), trainings.end(), is_readable);
    const bool is_only = first != trainings.end() &&
                         std::find_if(first + 1, trainings.end(), is_readable) == trainings.end();
    if (is_only) return static_cast<std::size_t>(first - trainings.begin());
    for (std::size_t i = 0; trainings.size() > 1 && i < trainings.size(); ++i) {
      const Result<ImportedPlan> own = tried(trainings[i]);
      if (own.ok() && plan && !is_same(*plan, *own)) {
        return bad_input(fmt::format("starts {} trainings with different plans", trainings.size()),
                         path_of(file_), "choose one with --command N. " + list_of(trainings));
      }
      if (!own.ok() || plan) continue;
      found = i;
      plan = *own;
    }
    if (trainings.size() > 1 && !found) {
      return bad_input(fmt::format("starts {} trainings", trainings.size()), path_of(file_),
                       "choose one with --command N. " + list_of(trainings));
    }
    return found.value_or(0);
  }

  // Returns an error if the plan is another one for other values of what the script does not state.
  // `plan` is null if the command has no plan as the script is; then an error if it has one with
  // other values.
  Status check_unknown(const LaunchCommand& command, const ImportedPlan* plan) const {
    std::vector<std::string> what, remedies;
    const auto ask = [&](std::string text, std::string remedy) {
      if (std::find(what.begin(), what.end(), text) != what.end()) return;
      what.push_back(std::move(text));
      remedies.push_back(std::move(remedy));
    };
    const auto ask_for_loose = [&](const LaunchCommand& one) {
      for (const std::string& name : one.loose) {
        if (name.starts_with("$(")) ask(why_unset(name), unset_remedy(name));
      }
    };
    ask_for_loose(command);
    const bool is_settled = plan == nullptr || script_.variants.empty() || tried(command).ok();
    for (const ShellVariant& variant : script_.variants) {
      if (!is_settled) break;  // the caller reports why
      TPSIM_TRY(const std::vector<LaunchCommand> others,
                trainings_of(variant.commands, script_, file_));
      const auto same = std::find_if(others.begin(), others.end(), [&](const LaunchCommand& one) {
        return one.program == command.program;
      });
      if (same == others.end()) continue;
      ask_for_loose(*same);
      ShellScript script = script_;
      script.files = variant.files;
      const Result<ImportedPlan> other =
          ScriptReader(framework_, file_, files_, inputs_, script).tried(*same);
      const bool matters = plan == nullptr ? other.ok() : !other.ok() || !is_same(*plan, *other);
      if (matters) ask(text_of(variant), remedy_of(variant));
    }
    if (what.empty()) return Ok{};
    return bad_input(fmt::format("the plan depends on {}", fmt::join(what, "; on ")),
                     path_of(file_), fmt::format("add {}", fmt::join(remedies, " and ")));
  }

 private:
  // Reads a file by the end of a path on another machine, two folders or more:
  // "../configs/ds/zero1.json" for "/home/me/configs/ds/zero1.json". Adds the path to `replaced`.
  Result<std::string> of_same_repository(const std::string& path,
                                         std::vector<std::string>& replaced) const {
    constexpr int kFoldersAbove = 4;
    std::size_t at = path.starts_with('/') ? path.find('/', 1) : std::string::npos;
    for (; at < path.rfind('/'); at = path.find('/', at + 1)) {
      std::string place = path.substr(at + 1);
      for (int i = 0; i <= kFoldersAbove; ++i, place.insert(0, "../")) {
        Result<std::string> text = inputs_.open(place);
        if (!text.ok()) continue;
        replaced.push_back(fmt::format("{}: {}", path, place));
        return text;
      }
    }
    return bad_input("does not exist", path);
  }
  static bool is_same(const ImportedPlan& a, const ImportedPlan& b) {
    return a.plan == b.plan && a.parts == b.parts && a.stack == b.stack &&
           to_json(with_vocab(a)) == to_json(with_vocab(b));
  }
  static std::string text_of(const ShellVariant& variant) {
    if (variant.kind == "status") return fmt::format("whether '{}' succeeds", variant.unknown);
    if (variant.kind == "file") return fmt::format("whether {} exists", variant.unknown);
    return why_unset(variant.unknown);
  }
  static std::string remedy_of(const ShellVariant& variant) {
    if (variant.kind == "variable" || variant.kind == "output")
      return unset_remedy(variant.unknown);
    return fmt::format("--answer '{0}=' if so, --answer '{0}!' if not", variant.unknown);
  }
  static std::string list_of(const std::vector<LaunchCommand>& trainings) {
    std::string list;
    for (std::size_t i = 0; i < trainings.size(); ++i) {
      constexpr std::size_t kMost = 80;
      std::string words = fmt::format("{}", fmt::join(trainings[i].words, " "));
      if (words.size() > kMost) words = words.substr(0, kMost) + "...";
      list += fmt::format("{}{}: {} {}", i == 0 ? "" : "; ", i + 1, trainings[i].program,
                          without_marks(words));
    }
    return list;
  }

  const Framework& framework_;
  const LaunchFile& file_;
  const Files& files_;
  ImportInputs inputs_;
  const ShellScript& script_;
};

void add_notes(const ShellScript& script, const LaunchCommand& command, std::size_t number,
               std::size_t trainings, ImportedPlan& plan) {
  if (!script.missing.empty()) {
    plan.notes.push_back(
        fmt::format("the script needs {}, which does not exist: its settings are unknown",
                    fmt::join(script.missing, ", ")));
  }
  if (!script.replaced.empty()) plan.notes.push_back(replaced_note(script.replaced));
  for (const std::string& name : command.loose) {
    const bool is_argument = name.find_first_not_of("$0123456789") == std::string::npos;
    if (is_argument) continue;
    plan.notes.push_back(
        fmt::format("{}: it is taken as empty ({})", why_unset(name), unset_remedy(name)));
  }
  if (trainings > 1) {
    plan.notes.push_back(
        fmt::format("the plan is that of command {} of {} ({}); --command N "
                    "chooses another",
                    number + 1, trainings, command.program));
  }
  if (!script.not_isolated.empty()) {
    plan.notes.push_back(fmt::format("the script ran without isolation from this machine ({})",
                                     script.not_isolated));
  }
}

// Adds a hint to an error that asks for the output of a Python program.
Error with_python_advice(Error error, const ImportInputs& inputs) {
  if (inputs.runs_code || error.hint.find("--answer 'python") == std::string::npos) return error;
  error.hint += "; or add --run, which runs the Python programs whose output the script uses";
  return error;
}

}  // namespace

// Errors and notes of the plan list sourced files that were not found, because these may contain
// further settings.
Result<ImportedPlan> read_script(const Framework& framework, const Files& files,
                                 const ImportInputs& inputs) {
  TPSIM_TRY(const LaunchFile file, file_named(files, framework.files().front()));
  ShellScript script;
  std::vector<LaunchCommand> trainings;
  if (has_arguments_block(file.text)) {
    TPSIM_TRY(trainings.emplace_back(), command_of_log(file));
  } else {
    TPSIM_TRY(script, located(file, script_of(file, inputs)));
    TPSIM_TRY(trainings, trainings_of(script.commands, script, file));
    if (trainings.empty()) {
      TPSIM_TRY(trainings.emplace_back(), options_of_script(script, file));
    }
  }
  const ScriptReader reader(framework, file, files, inputs, script);
  TPSIM_TRY(const std::size_t number, reader.chosen(trainings));
  const LaunchCommand& command = trainings[number];
  Result<ImportedPlan> read = reader.plan_of(command);
  const Status unknown = reader.check_unknown(command, read.ok() ? &*read : nullptr);
  if (!unknown.ok()) return with_python_advice(unknown.error(), inputs);
  if (!read.ok()) {
    return with_missing(with_python_advice(with_arguments(read.error(), file.text, inputs), inputs),
                        script.missing);
  }
  add_notes(script, command, number, trainings.size(), *read);
  return read;
}

std::vector<FlatSetting> exported_settings(const ShellScript& script) {
  std::vector<FlatSetting> settings;
  for (const ShellVariable& one : script.variables) {
    if (one.values.size() == 1) settings.push_back({one.name, one.values.front(), 0});
  }
  if (program_of(settings) == nullptr) settings.clear();
  return settings;
}

}  // namespace tpsim
