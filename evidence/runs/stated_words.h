// Spellings in run tables: dtypes with the kind of mixed precision, optimizers, GPU memory.
#pragma once

#include <optional>
#include <string>

#include "core/base/units.h"
#include "evidence/runs/run_table.h"

namespace tpsim {

// Returns the row with dtype as "bf16", "fp16", "fp32" or a recipe. Words such as "bf16-mixed",
// "amp_fp16", "pure_bf16" and "tf32" also set the parts master_weights and fp32_matmul, and known
// optimizers the part optimizer_kind, unless the row states them. Other words stay as they are.
PublishedRun with_usual_words(PublishedRun run);

// Returns the memory that the name of a GPU states ("V100-SXM2-16GB") if it is less than `usual`.
std::optional<Bytes> smaller_memory(const std::string& gpu, Bytes usual);

}  // namespace tpsim
