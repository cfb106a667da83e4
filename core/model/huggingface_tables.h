// The tables of Hugging Face's model families (huggingface_*.txt), which huggingface_common.txt
// describes. Internal to core/model.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json/statements.h"

namespace tpsim {

struct TableSection {
  std::vector<NamedExpression> parameters;
  std::vector<Statement> statements;
};

struct EncoderTable {
  std::string key;
  Expression condition;
  std::vector<Statement> statements;
};

// A shaping key that may repeat a value of the model.
struct KnownValue {
  std::string keys;
  bool is_flag = false;
  Expression value;
};

struct FamilyTables {
  std::map<std::string, TableSection, std::less<>> sections, families;
  std::vector<EncoderTable> encoders;
  std::string shaping_keys, other_keys, shorter_families;
  std::vector<KnownValue> known_values;
  std::map<std::string, std::string, std::less<>> unplanned;  // reason by type
};

// Parses the embedded tables. A line that does not fit the grammar is a BugError.
FamilyTables parse_family_tables();

}  // namespace tpsim
