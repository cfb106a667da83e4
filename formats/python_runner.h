// Runs the Python package tpsim_recipes with the installed python3. The package is embedded in
// tpsim.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim {

// Runs tpsim_recipes, or one of its modules, with these arguments and returns the JSON that it
// prints. kMissing without python3.
Result<std::string> output_of_recipes(std::vector<std::string> words,
                                      const std::string& module = "tpsim_recipes");
// Returns the options of tpsim_recipes that name source folders of frameworks.
inline std::vector<std::string> checkout_words(const std::vector<std::string>& checkouts) {
  std::vector<std::string> words;
  for (const std::string& folder : checkouts) words.insert(words.end(), {"--checkout", folder});
  return words;
}
// Returns the string under `key` of the answer; empty if there is none.
inline std::string text_of_answer(const JsonValue& answer, std::string_view key) {
  const JsonValue* const found = answer.find(key);
  const auto* const text = found == nullptr ? nullptr : found->as<std::string>();
  return text == nullptr ? "" : *text;
}

}  // namespace tpsim
