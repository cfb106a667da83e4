// Environments of published runs: the machine, software and defaults that a table does not state.
//
// data/published_runs/environments.json contains a list of environments. The first one that matches
// a row applies. It states values missing from the table (such as dropout or pipeline splits) with
// a source. It also lists the rows to which constants were fitted. All other rows test the
// prediction.
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

// Definition of a table's memory column.
enum class MeasuredMemory : std::uint8_t {
  kDevice,     // memory in use reported by the device
  kAllocated,  // memory allocated by the framework's allocator
};
std::string_view name_of(MeasuredMemory);

// A row that does not count toward accuracy, with the reason.
struct ExcludedRow {
  std::string id;
  std::string reason;
};

struct RunEnvironment {
  // A row matches if its fields start with these texts; an empty text matches all rows. `gpu` is
  // compared by is_gpu(): "NVIDIA A100-SXM4-80GB" matches "A100-80GB".
  std::string cluster, regime, gpu, framework;
  // Last month of the rows ("2024-09"); empty: any. Rows without a date do not match. Not a key of
  // the file.
  std::string until;

  std::string source;
  std::string runs_on;  // name of the cluster in the catalogue
  std::string stack;    // catalogue name; empty: the cluster's
  // The names in a row's columns `cluster` and `framework` select machine and software. `runs_on`
  // and `stack` are for rows whose names match no entry of the catalogue. Not a key of the file,
  // whose environments were written for their rows (evidence/runs/usual_machines.h).
  bool by_names = false;
  // Values marked "if not stated" apply to rows that do not state the value.
  double attention_dropout = 0;
  double hidden_dropout = 0;
  PositionKind position = PositionKind::kLearned;  // for models without a gated MLP
  bool embedding_norm = false;
  bool tied_embedding = true;
  std::int64_t vocab = 0;          // if not stated; 0: GPT-2's padded size
  int zero = 1;                    // if not stated
  DType dtype = DType::kBFloat16;  // if not stated
  std::string attention;           // if not stated; empty: flash
  // Whether the vocab size is not padded if tp = 1. Otherwise it is padded to a multiple.
  bool unpadded_vocabulary = false;
  // Whether these runs count for memory accuracy only, not for step time.
  bool memory_only = false;
  bool embedding_counts = false;      // embedding and head count as one layer each in the split
  std::string gradient_dtype;         // if not stated; empty: fp32 for bf16, else the dtype
  std::int64_t blocks_per_chunk = 0;  // of an interleaved pipeline schedule; 0: not interleaved
  bool sequence_parallel = false;     // if neither row nor stack states it; applies to tp > 1
  // Standard deviation to add to the prediction interval if the stack is not calibrated.
  double extra_spread = 0;
  MeasuredMemory memory = MeasuredMemory::kDevice;
  std::vector<std::string> calibration_rows;  // ids of the rows that constants were fitted to
  std::vector<ExcludedRow> excluded;
};

// Whether a row's GPU is the wanted one: all parts of `wanted`, split at dashes, start a word of
// `gpu`. A PCIe card of an A or H GPU only matches names with PCIe.
bool is_gpu(const std::string& gpu, const std::string& wanted);

Result<std::vector<RunEnvironment>> read_run_environments(const std::filesystem::path& path);
Result<std::vector<RunEnvironment>> parse_run_environments(std::string_view text,
                                                           const std::string& file);

// Returns the first environment that matches the row; null if none matches.
const RunEnvironment* environment_of(const std::vector<RunEnvironment>& environments,
                                     const PublishedRun& run);

}  // namespace tpsim
