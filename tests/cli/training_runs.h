// Command lines of `tpsim run`, and the steps that they print.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace tpsim::test {

// Arguments for the checkpoint, the tokens and the optimizer of a golden case.
std::string golden_arguments(const std::string& name, const std::string& device = "cpu",
                             const std::string& dtype = "fp32");
// Command lines of `tpsim`: ranks inside one process, or one process for each of `ranks`.
std::string tpsim_run(const std::string& arguments);
std::string tpsim_under_mpirun(int ranks, const std::string& arguments);
// `tpsim run` with one process for each of `ranks`.
std::string under_mpirun(int ranks, const std::string& arguments);

struct Step {
  std::int64_t number = 0;
  double loss = 0;
  bool operator==(const Step&) const = default;
};
// Parses the output of a run with --json, which may be truncated.
std::vector<Step> steps_of(const std::string& json);
// Runs the command with --json, and fails the test if the run fails.
std::vector<Step> trained(const std::string& command);

// True if two steps with either option have bit-identical losses and gradients, on `ranks`
// processes of mpirun. `before`: shell code that precedes the command.
bool trains_alike(int ranks, const std::string& arguments,
                  const std::array<std::string, 2>& options, const std::string& before = "");
// Compares gradient reduction overlapped with backward and after it.
bool reduces_alike(int ranks, const std::string& arguments, const std::string& before = "");

}  // namespace tpsim::test
