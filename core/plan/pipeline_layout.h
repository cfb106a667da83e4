// Megatron-Core's notation for pipeline stages (pipeline-model-parallel-layout).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tpsim {

struct PipelineLayout {
  std::vector<std::int64_t> blocks;  // per chunk, in model order
  std::int64_t predictions = 0;      // MTP blocks after them
};

// Parses "Et*3|(tt|)*29,|mL". E is the embedding, t a block, m an MTP block, L the loss, and |
// separates chunks. (...)*n and x*n repeat; commas and blanks are ignored. Nullopt for other text,
// and if the embedding is not first or the loss not last.
std::optional<PipelineLayout> parse_pipeline_layout(std::string_view text);

}  // namespace tpsim
