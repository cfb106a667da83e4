// Published training runs: rows of data/published_runs/*.csv.
//
// The header has the columns of docs/runs.md in any order. A row with a value in another column
// cannot be predicted, and empty fields there are ignored. An empty field or missing column means
// that the source does not state the value, and is stored as 0 or absent. A row without an id is
// named by its line, "line-7". A range such as 149-150 is stored as its middle.
//
// Text fields (recompute, attention, framework) contain the source's own words.
// evidence/runs/run_setup.h converts a row to a scenario and a plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"

namespace tpsim {

struct PublishedRun {
  int line = 0;  // line in the file
  std::string id, source, date, cluster, regime, gpu, model, dtype, framework, zero, recompute,
      attention, gradient_dtype, stage_split, memory_kind, outcome, notes;
  std::int64_t gpus = 0, gpus_per_node = 0, layers = 0, hidden = 0, heads = 0, kv_heads = 0,
               ffn_hidden = 0, seq = 0, vocab = 0, tp = 0, cp = 0, pp = 0, virtual_stages = 0,
               dp = 0, micro_batch = 0, global_batch = 0;
  std::int64_t head_dim = 0, experts = 0, experts_per_token = 0, shared_ffn = 0, dense_layers = 0,
               moe_every = 0;
  std::string routing, load_balance, optimizer, precision_recipe, layout, filled_from, same_release,
      recipe_match;
  std::optional<bool> gated_ffn, sequence_parallel;
  std::optional<double> mtp;
  std::optional<double> node_gbps, dropout;  // node_gbps: Gb/s of all NICs of a node, one direction
  // Plan settings without a field above, as text; "" if not stated.
  std::map<Setting, std::string> settings;
  std::map<StackPart, std::string> parts;  // software parts, as text
  std::string unknown;  // names the first unknown column in which the row has a value
  std::optional<double> step_s, tokens_per_s_per_gpu, hardware_tflops_per_gpu, model_tflops_per_gpu,
      memory_gb;
};

// Returns a header line with all columns, in the order of docs/runs.md.
std::string_view run_table_header();

// Errors name `file`, line and column.
Result<std::vector<PublishedRun>> parse_run_table(std::string_view text, const std::string& file);
Result<std::vector<PublishedRun>> read_run_table(const std::filesystem::path& path);

}  // namespace tpsim
