// Environments of published runs: machines, software and defaults behind the words of a table.
//
// data/published_runs/environments.json has a list; the first entry that matches a row applies. An
// entry states values that the table lacks (dropout, pipeline cuts), with a source. It also lists
// the rows that constants were fitted to. All other rows test the prediction.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/result.h"
#include "core/model/model_spec.h"
#include "evidence/runs/run_table.h"

namespace tpsim {

// Meaning of a table's memory column.
enum class MeasuredMemory : std::uint8_t {
  kDevice,     // memory in use reported by the device
  kAllocated,  // memory allocated by the framework's allocator
};
std::string_view name_of(MeasuredMemory);

// A row that must not count for accuracy, with the reason.
struct ExcludedRow {
  std::string id;
  std::string reason;
};

struct RunEnvironment {
  // A row matches if its fields start with these texts; an empty text matches all. For `gpu` every
  // part between dashes must occur: "NVIDIA A100-SXM4-80GB" matches "A100-80GB".
  std::string cluster, regime, gpu, framework;
  std::string from;  // likewise, for the row's source

  std::string source;
  std::string runs_on;        // the cluster's name in the catalogue
  std::string stack;          // name in the catalogue; empty: by default_stack, else the cluster's
  std::string default_stack;  // if no StackSpec::aliases matches the row's framework
  double attention_dropout = 0;
  double hidden_dropout = 0;
  PositionKind position = PositionKind::kLearned;  // for models without a gated MLP
  bool embedding_norm = false;
  bool tied_embedding = true;
  std::int64_t vocab = 0;          // if not stated; 0: GPT-2's
  int zero = 1;                    // if not stated
  DType dtype = DType::kBFloat16;  // if not stated
  std::string attention;           // if not stated; empty: flash
  // Whether the vocab size is used as stated with tp = 1. Otherwise it is padded to be divisible.
  bool unpadded_vocabulary = false;
  // Whether step times of these runs do not count, only their memory.
  bool memory_only = false;
  bool embedding_counts = false;      // embedding and head count as one layer each in the cut
  std::string gradient_dtype;         // if not stated; empty: fp32 for bf16, else the dtype
  std::int64_t blocks_per_chunk = 0;  // of an interleaved schedule; 0: not interleaved
  bool sequence_parallel = false;     // if not stated, with tp > 1
  // Standard deviation to add to the interval if no constant was fitted to runs of this
  // environment.
  double extra_spread = 0;
  // Parts of the software that its launch scripts state, for rows that do not state them.
  PartValues parts;
  MeasuredMemory memory = MeasuredMemory::kDevice;
  std::vector<std::string> calibration_rows;  // ids
  std::vector<ExcludedRow> excluded;
};

Result<std::vector<RunEnvironment>> read_run_environments(const std::filesystem::path& path);
Result<std::vector<RunEnvironment>> parse_run_environments(std::string_view text,
                                                           const std::string& file);

// Returns null if none matches.
const RunEnvironment* environment_of(const std::vector<RunEnvironment>& environments,
                                     const PublishedRun& run);

}  // namespace tpsim
