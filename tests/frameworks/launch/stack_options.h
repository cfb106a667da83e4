// The options that training stacks know, as their own sources list them; see stack_rules.h.
#pragma once

#include <vector>

namespace tpsim::test {

struct Option {
  const char* name;
  // "" takes no value; "int" and "float" one number; otherwise the words it may be, by '|'; "*" any
  const char* kind;
};

const std::vector<Option>& megatron_options();
const std::vector<Option>& deepspeed_options();
const std::vector<Option>& nemo_keys();  // "section.key"
const std::vector<Option>& titan_options();

}  // namespace tpsim::test
