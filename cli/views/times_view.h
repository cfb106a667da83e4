// Times of ops and collectives in a run, compared with the prediction, as tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/terminal.h"
#include "sim/step/comparison.h"

namespace tpsim::cli {

constexpr std::size_t kComparedRows = 16;
// Returns a table of at most `most` rows, and the number of rows left out.
std::string compared_table(const Terminal& terminal, const std::string& title,
                           const std::vector<ComparedTime>& rows, std::size_t most = kComparedRows);

// Returns a relative error as a signed percentage: "+4.2 %".
std::string error_text(double share);

}  // namespace tpsim::cli
