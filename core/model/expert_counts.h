// Tokens that each expert of a model got in a measured run, from a text file.
//
// Numbers with blanks, tabs or commas between them; from # on a line is a remark. Either a line has
// one number for each expert, and each line is a block's; or a line has one number, expert after
// expert, block after block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// Block after block, `experts` numbers each. Errors name the file, here by `name`, and the line.
Result<std::vector<double>> parse_expert_counts(std::string_view text, std::int64_t experts,
                                                const std::string& name);
Result<std::vector<double>> read_expert_counts(const std::filesystem::path& path,
                                               std::int64_t experts);

}  // namespace tpsim
