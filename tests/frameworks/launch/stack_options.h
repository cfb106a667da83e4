// The options of training stacks, from their sources; see stack_rules.h.
#pragma once

#include <vector>

namespace tpsim::test {

struct Option {
  const char* name;
  // "" has no value; "int" and "float" are one number; "*" is any value; otherwise legal values
  // separated by '|'
  const char* kind;
};

const std::vector<Option>& megatron_options();
const std::vector<Option>& deepspeed_options();
const std::vector<Option>& nemo_keys();  // "section.key"
const std::vector<Option>& titan_options();

}  // namespace tpsim::test
