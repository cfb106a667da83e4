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

// What accelerate and the program itself are configured by; what is told twice, by the program.
std::vector<std::string> configs_of(const CommandWords& parts);

// "train.sh" of "bash examples/train.sh", the last one; empty where no script is started.
std::string called_script(std::string_view text);

}  // namespace tpsim
