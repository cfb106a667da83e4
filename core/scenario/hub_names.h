// Maps names of Hugging Face Hub repositories to catalogue entries of the same shape. The rules are
// data (data/hub/names.json).
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
struct HubFamily {
  std::string name, family;
};
// `endings`, `words`, `beginnings`: parts of a repository name that do not change the model's
// shape. `shapes`: repositories whose name does not contain the name of their shape. `families`:
// beginnings of repository names whose config.json has a model_type of another name.
struct HubNames {
  std::vector<std::string> endings, words, beginnings;
  std::vector<HubShape> shapes;
  std::vector<HubFamily> families;
};
// `file` is used in errors.
Result<HubNames> hub_names_from_json(const JsonValue& root, const std::string& file);

// Returns the last part of "owner/name" in lower case.
std::string hub_stem(std::string_view name);
// Returns the entry with the shape of the repository `stem`, nullopt if none has it. Compares names
// without separators, then without endings, words, dates and versions, then uses the table of
// shapes. Last, an incomplete name such as "qwen3-235b" matches if exactly one entry starts with
// it. `entries` must be sorted.
std::optional<std::string> entry_with_shape(const HubNames& rules, const std::string& stem,
                                            const std::vector<std::string>& entries);
// Returns what is most like a repository `stem` that no entry has the shape of: "gemma-3-27b", or
// "models of the family olmo2", or both. It is the entry, model_type or row of HubNames::families
// with the longest common beginning. Empty if nothing has a common beginning.
std::string nearest_model(const HubNames& rules, const std::string& stem,
                          const std::vector<std::string>& entries);
// Whether the names are equal apart from separators.
bool is_same_name(std::string_view stem, std::string_view entry);

}  // namespace tpsim
