// Words of a training command: what is the launcher's, what the program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpsim {

// "--bf16"
bool is_option(std::string_view word);

// Options of the launcher stand before the program, those of the training behind it.
struct CommandWords {
  std::vector<std::string> launcher;
  std::vector<std::string> training;
  // "pretrain_gpt.py", the module of "-m", or a console command: "axolotl train". Empty where the
  // words start no training.
  std::string program;
};
CommandWords command_words(const std::vector<std::string>& words);

// Returns the configuration files of accelerate, then those of the program. If both state a
// setting, the program's file counts.
std::vector<std::string> configs_of(const CommandWords& parts);

// "train.sh" of "bash examples/train.sh", the last one; empty where no script is started.
std::string called_script(std::string_view text);

}  // namespace tpsim
