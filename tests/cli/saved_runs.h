// Runs that save their state, and the check that the next start continues correctly.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/training_runs.h"

namespace tpsim::test {

inline constexpr const char* kLayout = "--tp 2 --micro-batch 2 --global-batch 4 ";
inline constexpr int kRanks = 2;
inline const std::string kForever = "--steps 1000000 ";

// Arguments of the small BLOOM that save every third step into "state" in the folder.
std::string saving(const Folder& folder);
std::string steps_up_to(std::int64_t last);

// Saved states, oldest first.
std::vector<std::filesystem::path> states(const Folder& folder);
std::int64_t step_of(const std::filesystem::path& state);
// True if the state folder has an unfinished state or temporary file.
bool has_leftovers(const Folder& folder);

int count_of(const std::string& text, const std::string& piece);

// Starts the run again from the newest state, or from the beginning without one. Checks that
// `before` (the steps printed so far) and the new steps equal an undisturbed run.
void check_goes_on(const Folder& folder, const std::vector<Step>& before);

}  // namespace tpsim::test
