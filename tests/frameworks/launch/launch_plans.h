// Plans for tests of launch files, and functions that change the files.
#pragma once

#include <string>

#include "core/scenario/plan_file.h"

namespace tpsim::test {

PlanFile file_of(const ModelSpec& model, const Plan& plan);
// The published layout of BLOOM.
PlanFile bloom_file();
// LLaMA-3 70B with an interleaved, sequence-parallel layout.
PlanFile llama_file();
// LLaMA-3 70B with a layout of torchtitan.
PlanFile titan_file();

// Returns `text` with `instead` in place of the first `part`. Fails the test without `part`.
std::string without(std::string text, const std::string& part, const std::string& instead);
// True if an exported file has `line` among its indented lines.
bool holds_line(const std::string& text, const std::string& line);

}  // namespace tpsim::test
