// Splits a training command into the launcher's arguments and the program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpsim {

// "--bf16"
bool is_option(std::string_view word);

// The launcher's options precede the program; the training's options follow.
struct CommandWords {
  std::vector<std::string> launcher;
  std::vector<std::string> training;
  // "pretrain_gpt.py", the module of "-m", or a console command ("axolotl train"). Empty if the
  // words do not start a training.
  std::string program;
};
CommandWords command_words(const std::vector<std::string>& words);

// Returns the configuration files of accelerate, then those of the program. If both state a
// setting, the program's file counts.
std::vector<std::string> configs_of(const CommandWords& parts);

// Returns the last script that the text starts: "train.sh" for "bash examples/train.sh". Empty if
// there is none.
std::string called_script(std::string_view text);

}  // namespace tpsim
