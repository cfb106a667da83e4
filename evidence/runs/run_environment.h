// Where published runs ran: which machines, software and habits stand behind the words of a table.
//
// data/published_runs/environments.json holds a list; the first entry that matches a row applies.
// What a table does not state (dropout, where stages are cut) stands here with its source, and so
// do the rows that constants were fitted on: all others test the prediction.
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

// What a table's memory column says.
enum class MeasuredMemory : std::uint8_t {
  kDevice,     // what the device reports as used
  kAllocated,  // what the framework's allocator has handed out
};
std::string_view name_of(MeasuredMemory);

// A row that says nothing about how fast a plan runs, and why.
struct ExcludedRow {
  std::string id;
  std::string reason;
};

struct RunEnvironment {
  // A row matches where its words begin with these; an empty one matches all. Of `gpu` every part
  // between dashes must occur, so that "NVIDIA A100-SXM4-80GB" is an "A100-80GB".
  std::string cluster, regime, gpu, framework;
  std::string from;  // likewise, of the row's source

  std::string source;
  std::string runs_on;        // catalogue name of the cluster
  std::string stack;          // and of the software; empty: the cluster's, but
                              // where default_stack is given what the row's framework names by
  std::string default_stack;  // StackSpec::aliases, else that
  double attention_dropout = 0;
  double hidden_dropout = 0;
  PositionKind position = PositionKind::kLearned;  // of models without a gated MLP
  bool embedding_norm = false;
  bool tied_embedding = true;
  std::int64_t vocab = 0;          // where a row does not say; 0: GPT-2's
  int zero = 1;                    // where a row does not say
  DType dtype = DType::kBFloat16;  // likewise
  std::string attention;           // likewise; empty: flash
  // The vocabulary is left as stated where one rank holds all of it (else padded to divide).
  bool unpadded_vocabulary = false;
  // Time is not what these runs were for; only their memory counts.
  bool memory_only = false;
  bool embedding_counts = false;      // likewise, when stages are cut: as one layer each
  std::string gradient_dtype;         // likewise; empty: fp32 for bf16 training, else the dtype
  std::int64_t blocks_per_chunk = 0;  // likewise, of an interleaved schedule; 0: not interleaved
  bool sequence_parallel = false;     // likewise, with tp > 1
  // Standard deviation of predictions that comes on top where no constant was fitted on runs of
  // this environment.
  double extra_spread = 0;
  // What its launch scripts say of parts of the software, where a row does not.
  PartValues parts;
  MeasuredMemory memory = MeasuredMemory::kDevice;
  std::vector<std::string> calibration_rows;  // ids
  std::vector<ExcludedRow> excluded;
};

Result<std::vector<RunEnvironment>> read_run_environments(const std::filesystem::path& path);
Result<std::vector<RunEnvironment>> parse_run_environments(std::string_view text,
                                                           const std::string& file);

// Null when none matches.
const RunEnvironment* environment_of(const std::vector<RunEnvironment>& environments,
                                     const PublishedRun& run);

}  // namespace tpsim
