// The rules of training stacks for their launch files, independent of the exporters. Each function
// returns the stack's objection, or an empty text.
//
//   Megatron-LM         megatron/training/arguments.py @ 000c4ac2: add_argument and validate_args
//   Megatron-DeepSpeed  bigscience-workshop megatron/arguments.py @ 007719ad, pretrain_gpt.py, and
//                       DeepSpeed's runtime/config.py and runtime/pipe/engine.py
//   Megatron-Bridge     the fields of its model, train, ddp, checkpoint and dist configurations
//   torchtitan          torchtitan/config/configs.py @ b5bcd76, read by tyro
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frameworks/launch/launch_files.h"

namespace tpsim::test {

std::string objection(LaunchStack stack, const std::vector<LaunchFile>& files);

// Result of running a script in bash: variables, and the words of the array TRAIN_ARGS.
struct Script {
  std::map<std::string, std::string> variables;
  std::vector<std::string> arguments;
  std::vector<std::string> directives;  // words after #SBATCH
  std::string fault;
};
Script run_script(const std::string& text);

}  // namespace tpsim::test
