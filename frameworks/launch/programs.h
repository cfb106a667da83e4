// Training programs whose settings are translated for an existing reader: the reader of Megatron's
// arguments, of Hugging Face's Trainer, or of torchtitan.
//
// Each program is a block of a table (facts.h), which defines how to recognize the program, how to
// translate its settings, its defaults and its stack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "formats/settings_text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/facts.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {

// The reader of a program's settings.
enum class SettingsOf : std::uint8_t { kMegatron, kTrainer, kTorchTitan };
template <>
inline constexpr auto kEnumNames<SettingsOf> = words<3>("megatron trainer torchtitan");

// Line of settings in the program's own sources.
inline constexpr int kFromSources = -1;

class ProgramSettings;

// Reads the configuration files that the settings name, and returns the merged settings.
using ExpandProgram = Result<std::vector<FlatSetting>>(std::vector<FlatSetting>, const LaunchFile&,
                                                       const ImportInputs&, ProgramSettings&);
// Sets values that follow from several settings.
using DeriveProgram = void(ProgramSettings&, LeftSettings&);

// A program of the tables (frameworks/launch/facts.h).
struct TrainingProgram {
  std::string_view name;
  std::string commands, marks;
  std::string_view file_keys = {};
  SettingsOf settings = SettingsOf::kMegatron;
  std::string_view stack = {};  // name in the catalogue; empty: as the reader determines
  FactTable facts = {};
  std::string defaults = {};
  bool keeps_rest = false;     // true: pass other settings to the reader; false: they are unknown
  std::string_view base = {};  // the program's own configuration, by its path in the sources
  std::string_view note = {};  // the part of the program's work that the plan does not include
  ExpandProgram* expand = nullptr;
  DeriveProgram* derive = nullptr;
  std::vector<Statement> rules = {};
};

// Settings of a program under the reader's names, and intermediate "@" values.
class ProgramSettings {
 public:
  const std::string* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool is(std::string_view name, std::string_view value) const;
  void put(std::string_view name, std::string value);  // replaces an earlier value
  void put(std::string_view name, std::int64_t value) { put(name, std::to_string(value)); }
  void erase(std::string_view name);
  // Returns the setting as an integer >= 1, or `fallback` if it is missing or invalid. If the value
  // refers to an unset variable, adds an open question.
  std::int64_t number(std::string_view name, std::int64_t fallback);
  std::int64_t gpus();  // the requested or the stated number of GPUs; 0 if unknown
  void note(std::string text) { notes.push_back(std::move(text)); }
  // Returns Megatron's data-parallel size; 0 if the number of GPUs is unknown.
  std::int64_t replicas();

  std::vector<FlatSetting>& all() { return all_; }
  const std::vector<FlatSetting>& all() const { return all_; }
  // Returns the settings without those that only the import of programs reads ("@gpus").
  std::vector<FlatSetting> of_framework() const;
  std::string program;  // the command, such as "swift rlhf"; empty for a file
  std::string file;     // its path
  std::int64_t gpus_asked = 0;
  std::vector<std::string> notes;
  std::vector<std::string> outside;
  OpenQuestions open;
  std::optional<ModelSpec> model;  // that the program's settings describe
  std::optional<Error> error;      // an error that no command-line option can resolve

 private:
  std::vector<FlatSetting> all_;
};

const std::vector<TrainingProgram>& all_programs();

// Runs the lines "then" of a table (facts.h) on the settings.
void run_rules(const std::vector<Statement>& rules, ProgramSettings& settings, LeftSettings& left);
// Runs the lines "then" of the table with this name on settings. Returns the notes that they add.
std::vector<std::string> apply_rules(std::string_view table, std::vector<FlatSetting>& settings,
                                     LeftSettings& left);
// Returns the model of the config.json that the lines "then" of a table set, under "json.KEY". If
// they set "outer.KEY" too, these keys enclose the others as "text_config".
Result<ModelSpec> model_by_rules(std::string_view table, std::vector<FlatSetting> settings,
                                 const std::string& file);
// Checks that every function and table of the rules exists; a BugError otherwise.
void check_rules(const std::vector<FactBlock>& blocks);

// Returns the program that the command starts; null if it is unknown. The words of the command are
// parsed as settings.
const TrainingProgram* program_of(const LaunchCommand& command);
// Returns the program whose file or exported script variables have these settings; null if it is
// unknown.
const TrainingProgram* program_of(const std::vector<FlatSetting>& settings);
// Parses words as settings: "--name value", "--name=value" and Hydra's "name=value".
std::vector<FlatSetting> settings_of_words(const std::vector<std::string>& words);

// Imports the program's settings. `command` provides the number of GPUs and the environment; null
// for a configuration file.
Result<ImportedPlan> import_program(const TrainingProgram& program,
                                    std::vector<FlatSetting> settings, const LaunchCommand* command,
                                    const LaunchFile& file, const ImportInputs& inputs);

}  // namespace tpsim
