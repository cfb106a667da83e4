// Splits a training command into the launcher's arguments and the program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frameworks/launch/launch_options.h"

namespace tpsim {

// Whether the word is the name of an option: "--bf16".
bool is_option(std::string_view word);
// Parses options of the forms "--x=y" and "--x y z". All words up to the next option are the value,
// including negative numbers. If an option is repeated, the last one counts.
std::vector<LaunchOption> options_of(const std::vector<std::string>& words);

// Words of a command: `launcher` precedes the program, and `training` follows the program.
struct CommandWords {
  std::vector<std::string> launcher;
  std::vector<std::string> training;
  // The script "pretrain_gpt.py", the module after "-m", or a console command ("axolotl train").
  // Empty if the words do not start a training.
  std::string program;
};
CommandWords command_words(const std::vector<std::string>& words);

// Returns the configuration files that the command names: accelerate's first, then the program's
// own. If both state a setting, the program's file takes precedence.
std::vector<std::string> configs_of(const CommandWords& parts);

}  // namespace tpsim
