// Megatron-Core's words for a cut into pipeline stages.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tpsim {

struct PipelineLayout {
  std::vector<std::int64_t> blocks;  // of every chunk, in model order
  std::int64_t predictions = 0;      // blocks behind them that predict later tokens
};

// "Et*3|(tt|)*29,|mL": E embedding, t one block, m one that predicts later tokens, L loss, |
// between chunks, (...)*n and x*n repeat, commas and blanks say nothing. Nothing for any other
// text, and where embedding and loss do not stand at the ends.
std::optional<PipelineLayout> parse_pipeline_layout(std::string_view text);

}  // namespace tpsim
