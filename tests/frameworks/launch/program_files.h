// Test files of training programs, and their import from the test folder.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <map>
#include <string>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

namespace fs = std::filesystem;

inline const fs::path kFiles = fs::path(TPSIM_SOURCE_DIR) / "tests/frameworks/launch/programs";

inline std::string letters_in(std::string_view name) {
  std::string letters = in_lower_case(std::string(name.substr(name.rfind('/') + 1)));
  if (letters.starts_with("meta-")) letters.erase(0, 5);
  std::erase_if(letters, [](unsigned char c) { return std::isalnum(c) == 0; });
  return letters;
}

inline Result<ModelSpec> loaded(const std::string& name) {
  const Catalogue catalogue = Catalogue::open().value();
  for (const std::string& known : catalogue.list(CatalogueKind::kModels)) {
    if (letters_in(known) == letters_in(name)) return catalogue.load_model(known);
  }
  return bad_input("is not there", name);
}

inline ImportInputs beside(std::int64_t gpus = 0, std::map<std::string, std::string> given = {}) {
  ImportInputs inputs;
  inputs.gpus = gpus;
  inputs.given = std::move(given);
  inputs.load = loaded;
  inputs.open = [](const std::string& name) { return read_file(kFiles / name, 1 << 20); };
  return inputs;
}

inline Result<ImportedPlan> import_text(const std::string& name, std::string text,
                                        const ImportInputs& inputs) {
  const LaunchFile file{name, std::move(text), (kFiles / name).string()};
  if (!name.ends_with(".sh")) return import_config(file, inputs);
  const LaunchStack stack = stack_of_text(file.text);
  return import_plan(stack, {{launch_file_names(stack).front(), file.text, file.path}}, inputs);
}

inline Result<ImportedPlan> import_named(const std::string& name, const ImportInputs& inputs) {
  return import_text(name, read_file(kFiles / name, 1 << 20).value(), inputs);
}

inline ImportedPlan plan_of(const std::string& name, const ImportInputs& inputs = beside()) {
  Result<ImportedPlan> plan = import_named(name, inputs);
  INFO(name);
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

// Whether a note of the plan contains the text.
inline bool says(const ImportedPlan& plan, std::string_view text) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace tpsim
