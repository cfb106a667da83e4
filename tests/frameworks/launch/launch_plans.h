// Plans for tests of launch files, and a way to break the files.
#pragma once

#include <string>

#include "core/scenario/plan_file.h"

namespace tpsim::test {

PlanFile file_of(const ModelSpec& model, const Plan& plan);
// BLOOM's own layout.
PlanFile bloom_file();
// LLaMA-3 70B with an interleaved, sequence-parallel layout.
PlanFile llama_file();
// The same model as torchtitan shards it.
PlanFile titan_file();

// `text` with `instead` in place of the first `part`, which it has.
std::string without(std::string text, const std::string& part, const std::string& instead);
// Whether an exported file has `line` among its indented lines.
bool holds_line(const std::string& text, const std::string& line);

}  // namespace tpsim::test
