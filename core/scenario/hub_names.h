// Names of models on the Hugging Face Hub: which entry of the catalogue has the shape of a
// repository. The rules are data (data/hub/names.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim {

struct HubShape {
  std::string name, shape;
};
// Words that a publisher appends to, puts before or into the name of a shape without changing it,
// and repositories that are called otherwise than their shape.
struct HubNames {
  std::vector<std::string> endings, words, beginnings;
  std::vector<HubShape> shapes;
};
// `file` names the source in errors.
Result<HubNames> hub_names_from_json(const JsonValue& root, const std::string& file);

// The last part of "owner/name", in lower case.
std::string hub_stem(std::string_view name);
// Returns the entry with the shape of the repository `stem`, nullopt if none has it. Compares names
// without separators; then without endings, words, dates and versions; then by the table of shapes.
// Last, an unfinished name such as "qwen3-235b" stands for the only entry that starts with it.
// `entries` is in alphabetical order.
std::optional<std::string> entry_with_shape(const HubNames& rules, const std::string& stem,
                                            const std::vector<std::string>& entries);
// Whether `stem` and `entry` are one name but for dashes.
bool is_same_name(std::string_view stem, std::string_view entry);

}  // namespace tpsim
