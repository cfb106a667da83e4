// Training programs whose settings stand for those of a reader that is there: Megatron's arguments,
// the keys of Hugging Face's Trainer, or torchtitan's. A program is a row of a table: how it is
// recognized, what its settings become, its defaults, its stack.
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

// "@name": for the program's own arithmetic; of these the engine itself reads
//   @model       name of the model, or a path that ends in it
//   @config      configuration file, read first
//   @nodes, @gpus-per-node, @gpus
//   @length      tokens of a sequence; the sum of all settings that become it
//   @global-batch
//   @part.KEY    part of the software: core/software/stack_parts.h
struct ProgramSetting {
  std::string_view key;         // names, or beginnings that end in '*'; with '_', not '-'
  std::string_view becomes;     // the reader's name; "*" for what the key's '*' stands for
  std::string_view value = {};  // patterns, in lower case, that its value has to match; empty: any
  std::string_view as = {};     // what the value becomes; empty: the same
};

class ProgramSettings;

struct TrainingProgram {
  std::string_view name;
  // Console commands and modules: "swift sft", "verl.trainer.*". A file counts as its module.
  std::string_view commands = {};
  // Patterns of "setting=value", "actor.strategy=megatron": one has to match. Empty: none has to.
  std::string_view marks = {};
  // Keys that a configuration file has if it is this program's; all of these words have to match.
  std::string_view file_keys = {};
  SettingsOf settings = SettingsOf::kMegatron;
  std::string_view stack = {};  // of the catalogue; empty: the reader's
  // All rows that match a setting and its value apply; one without a value applies if no other did.
  std::span<const ProgramSetting> rows = {};
  std::span<const ProgramSetting> shared_rows = {};  // with another program; tried last
  // The program's own defaults: what is not set becomes `as`.
  std::span<const ProgramSetting> defaults = {};
  std::span<const LeftOver> refused = {};
  std::string_view outside = {};  // settings that no plan is made of
  bool keeps_rest = false;        // all others are the reader's own; otherwise they are unknown
  std::string_view note = {};     // which part of its work the plan is not of
  // Replaces its settings by those of the files that they name.
  Result<std::vector<FlatSetting>> (*expand)(std::vector<FlatSetting>, const LaunchFile&,
                                             const ImportInputs&, ProgramSettings&) = nullptr;
  void (*derive)(ProgramSettings&, LeftSettings&) = nullptr;
  // Adds what the reader's settings cannot say.
  void (*finish)(const ProgramSettings&, ImportedPlan&) = nullptr;
};

// Settings in the reader's names, and "@" ones.
class ProgramSettings {
 public:
  const std::string* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool is(std::string_view name, std::string_view value) const;
  void put(std::string_view name, std::string value);  // in place of what was there
  void put(std::string_view name, std::int64_t value) { put(name, std::to_string(value)); }
  void erase(std::string_view name);
  // A whole number from 1 on; `fallback` where there is none. A value that nobody set becomes a
  // question.
  std::int64_t number(std::string_view name, std::int64_t fallback);
  std::int64_t gpus();  // as asked, or as stated; 0 where nothing says
  void note(std::string text) { notes.push_back(std::move(text)); }
  // Megatron's data-parallel ranks; 0 where the number of GPUs is open.
  std::int64_t replicas();
  // A micro-batch of at most `tokens`, as many whole sequences as divide the batch of a rank.
  void put_micro_batch_of(std::int64_t tokens);

  const std::vector<FlatSetting>& all() const { return all_; }
  std::string program;  // "swift rlhf": the command that starts it; empty of a file
  std::int64_t gpus_asked = 0;
  std::vector<std::string> notes;
  std::vector<std::string> outside;
  OpenQuestions open;
  std::optional<Error> error;  // what no answer mends

 private:
  std::vector<FlatSetting> all_;
};

const std::vector<const TrainingProgram*>& all_programs();

// The row of a command, whose words are read as settings; null for other programs.
const TrainingProgram* program_of(const LaunchCommand& command);
// Likewise of a file's settings, or of a script's variables.
const TrainingProgram* program_of(const std::vector<FlatSetting>& settings);
// Words of a command as settings: "--name value", "--name=value" and Hydra's "name=value".
std::vector<FlatSetting> settings_of_words(const std::vector<std::string>& words);

// `command` says sizes and environment; null for a file.
Result<ImportedPlan> import_program(const TrainingProgram& program,
                                    std::vector<FlatSetting> settings, const LaunchCommand* command,
                                    const LaunchFile& file, const ImportInputs& inputs);

// Rows of the table, each in a file of its own.
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
