// `tpsim run` as users type it, in a test: command lines, and what they print.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace tpsim::test {

// A golden case's checkpoint and tokens with its optimizer.
std::string golden_arguments(const std::string& name, const std::string& device = "cpu",
                             const std::string& dtype = "fp32");
// `tpsim run` with ranks inside the process, or one process for each of `ranks`.
std::string tpsim_run(const std::string& arguments);
std::string tpsim_under_mpirun(int ranks, const std::string& arguments);
// The same of `tpsim run`.
std::string under_mpirun(int ranks, const std::string& arguments);

struct Step {
  std::int64_t number = 0;
  double loss = 0;
  bool operator==(const Step&) const = default;
};
// Of the output of a run with --json; also of one that was cut off.
std::vector<Step> steps_of(const std::string& json);
// Runs it with --json, and fails the test when the run fails.
std::vector<Step> trained(const std::string& command);

// Whether two steps on `ranks` of mpirun have the same losses and gradients, to the last bit, with
// either of two options. `before`: a command of the shell.
bool trains_alike(int ranks, const std::string& arguments,
                  const std::array<std::string, 2>& options, const std::string& before = "");
// With gradients reduced beside backward and after it.
bool reduces_alike(int ranks, const std::string& arguments, const std::string& before = "");

}  // namespace tpsim::test
