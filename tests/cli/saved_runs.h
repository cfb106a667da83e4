// Runs that save their state, and whether the next start goes on as if nothing had happened.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/training_runs.h"

namespace tpsim::test {

inline constexpr const char* kLayout = "--tp 2 --micro-batch 2 --global-batch 4 ";
inline constexpr int kRanks = 2;
inline const std::string kForever = "--steps 1000000 ";

// Of the small BLOOM, every third step, into the folder's "state".
std::string saving(const Folder& folder);
std::string steps_up_to(std::int64_t last);

// Oldest first.
std::vector<std::filesystem::path> states(const Folder& folder);
std::int64_t step_of(const std::filesystem::path& state);
// Of a state that was never finished, or of a file.
bool has_leftovers(const Folder& folder);

int count_of(const std::string& text, const std::string& piece);

// The next start takes up the newest state; `before`, what the runs so far printed, and it together
// are an undisturbed run. Without any state it starts over.
void check_goes_on(const Folder& folder, const std::vector<Step>& before);

}  // namespace tpsim::test
