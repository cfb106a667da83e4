// Tokens per expert of a measured run, from a text file.
//
// Numbers are separated by blanks, tabs or commas; # starts a comment. A line has one number per
// expert and stands for one block. Alternatively each line has one number: expert after expert,
// block after block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// Returns `experts` numbers per block, block after block. Errors name the line and the file
// (`name`).
Result<std::vector<double>> parse_expert_counts(std::string_view text, std::int64_t experts,
                                                const std::string& name);
Result<std::vector<double>> read_expert_counts(const std::filesystem::path& path,
                                               std::int64_t experts);

}  // namespace tpsim
