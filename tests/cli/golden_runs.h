// Runs of the golden cases, compared with results of PyTorch in float64 (tests/golden).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/training_runs.h"

namespace tpsim::test {

// Checks that there are `count` steps, and compares each loss with PyTorch's loss of that step.
void check_losses(const std::string& model, std::size_t count, const std::vector<Step>& steps,
                  double tolerance);

// Compares the dumped gradients of all weights with PyTorch's. Names are PyTorch's without
// "transformer.".
void check_gradients(const std::string& model, const std::filesystem::path& dump);

}  // namespace tpsim::test
