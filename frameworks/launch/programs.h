// Training programs whose settings map to those of an existing reader: Megatron's arguments, the
// keys of Hugging Face's Trainer, or torchtitan's.
//
// Each program is a row of a table: how to recognize it, the mapping of its settings, its defaults,
// its stack.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "formats/settings_text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {

enum class SettingsOf : std::uint8_t { kMegatron, kTrainer, kTorchTitan };

// Maps one setting. "@name" is an intermediate value of the program's own arithmetic. The import
// itself reads:
//   @model       name of the model, or a path that ends in it
//   @config      configuration file, read first
//   @nodes, @gpus-per-node, @gpus
//   @length      tokens of a sequence; the sum of all settings that map to it
//   @global-batch
//   @part.KEY    part of the software: core/software/stack_parts.h
struct ProgramSetting {
  std::string_view key;         // names, or prefixes that end in '*'; with '_', not '-'
  std::string_view becomes;     // the reader's name; "*" inserts the text that '*' matched
  std::string_view value = {};  // patterns in lower case that the value must match; empty: any
  std::string_view as = {};     // the new value; empty: unchanged
};

class ProgramSettings;

struct TrainingProgram {
  std::string_view name;
  // Console commands and modules: "swift sft", "verl.trainer.*". A file counts as a module.
  std::string_view commands = {};
  // Patterns of "setting=value" ("actor.strategy=megatron"), one of which must match. Empty: no
  // condition.
  std::string_view marks = {};
  // Keys that identify a configuration file of this program. All must be present.
  std::string_view file_keys = {};
  SettingsOf settings = SettingsOf::kMegatron;
  std::string_view stack = {};  // in the catalogue; empty: the reader's
  // Every row that matches setting and value applies. A row without a value applies if no other row
  // does.
  std::span<const ProgramSetting> rows = {};
  std::span<const ProgramSetting> shared_rows = {};  // shared with another program; tried last
  // Defaults of the program: a missing setting becomes `as`.
  std::span<const ProgramSetting> defaults = {};
  std::span<const LeftOver> refused = {};
  std::string_view outside = {};  // settings that do not affect a plan
  bool keeps_rest = false;        // other settings are the reader's own; false: they are unknown
  std::string_view note = {};     // the part of the program's work that the plan excludes
  // Replaces the settings by those of the files that they name.
  Result<std::vector<FlatSetting>> (*expand)(std::vector<FlatSetting>, const LaunchFile&,
                                             const ImportInputs&, ProgramSettings&) = nullptr;
  void (*derive)(ProgramSettings&, LeftSettings&) = nullptr;
  // Adds results that the reader's settings cannot express.
  void (*finish)(const ProgramSettings&, ImportedPlan&) = nullptr;
};

// Settings in the reader's names, and intermediate "@" values.
class ProgramSettings {
 public:
  const std::string* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool is(std::string_view name, std::string_view value) const;
  void put(std::string_view name, std::string value);  // replaces an earlier value
  void put(std::string_view name, std::int64_t value) { put(name, std::to_string(value)); }
  void erase(std::string_view name);
  // Returns an integer >= 1, or `fallback` if there is none. A value with an unset variable becomes
  // a question.
  std::int64_t number(std::string_view name, std::int64_t fallback);
  std::int64_t gpus();  // requested, or stated; 0 if unknown
  void note(std::string text) { notes.push_back(std::move(text)); }
  // Returns Megatron's data-parallel size; 0 if the number of GPUs is unknown.
  std::int64_t replicas();
  // Sets a micro-batch of at most `tokens`. It has whole sequences and divides a rank's batch.
  void put_micro_batch_of(std::int64_t tokens);

  const std::vector<FlatSetting>& all() const { return all_; }
  std::string program;  // "swift rlhf": the start command; empty for a file
  std::int64_t gpus_asked = 0;
  std::vector<std::string> notes;
  std::vector<std::string> outside;
  OpenQuestions open;
  std::optional<Error> error;  // an error that options cannot fix

 private:
  std::vector<FlatSetting> all_;
};

const std::vector<const TrainingProgram*>& all_programs();

// Returns the row of a command; null for other programs. The command's words are read as settings.
const TrainingProgram* program_of(const LaunchCommand& command);
// Likewise for the settings of a file, or the variables of a script.
const TrainingProgram* program_of(const std::vector<FlatSetting>& settings);
// Parses words as settings: "--name value", "--name=value" and Hydra's "name=value".
std::vector<FlatSetting> settings_of_words(const std::vector<std::string>& words);

// Imports the program's settings. `command` has the sizes and environment; null for a file.
Result<ImportedPlan> import_program(const TrainingProgram& program,
                                    std::vector<FlatSetting> settings, const LaunchCommand* command,
                                    const LaunchFile& file, const ImportInputs& inputs);

// Rows of the table. Each program has its own file.
std::span<const TrainingProgram> swift_programs();
std::span<const TrainingProgram> verl_programs();
std::span<const TrainingProgram> openrlhf_programs();
std::span<const TrainingProgram> slime_programs();
std::span<const TrainingProgram> primus_programs();
std::span<const TrainingProgram> neox_programs();
std::span<const TrainingProgram> torchtune_programs();
std::span<const TrainingProgram> mlperf_programs();
std::span<const TrainingProgram> llama_factory_programs();
std::span<const TrainingProgram> torchtitan_programs();

}  // namespace tpsim
