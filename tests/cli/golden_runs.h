// Runs of the golden cases against what PyTorch computed in float64 (tests/golden).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/training_runs.h"

namespace tpsim::test {

// `count` steps, each with the loss that PyTorch has for its number.
void check_losses(const std::string& model, std::size_t count, const std::vector<Step>& steps,
                  double tolerance);

// Every weight of the checkpoint has its gradient, under its own name but for "transformer.".
void check_gradients(const std::string& model, const std::filesystem::path& dump);

}  // namespace tpsim::test
