// Kinds of optimizers: which parameters each updates, its state, its work, and what it requires.
//
// The reference model trains with a row, sim/ traces and prices the same ops, and checkpoints,
// campaigns, reports and importers read the state and the names from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/enum_words.h"
#include "core/model/model_spec.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// Tensors of optimizer state with one element per parameter. The names label their allocations.
// The master weights are fp32, and absent where MasterWeights or the plan's dtype makes them
// superfluous; the moments have SoftwareParts::optimizer_dtype.
enum class StateTensor : std::uint8_t { kMaster, kMomentum, kVariance };
template <>
inline constexpr auto kEnumNames<StateTensor> =
    std::to_array<std::string_view>({"master_weights", "momentum", "variance"});
// Prefix of the tensor's names in saved states.
std::string_view prefix_in_files(StateTensor tensor);
inline constexpr std::array kStateTensors = {StateTensor::kMaster, StateTensor::kMomentum,
                                             StateTensor::kVariance};

enum class UpdatedParameters : std::uint8_t {
  kAll,
  // Weights of linear layers in blocks. AdamW updates embeddings, heads, norms and biases.
  kBlockMatrices,
  kNotEmbeddings,  // AdamW updates embeddings
};

// Passes over the parameters of an update that is not one kernel: of their dtype, and in fp32.
struct UpdatePasses {
  double narrow = 0, wide = 0;
  std::int64_t launches = 0;
};

struct OptimizerRow {
  OptimizerKind kind{};
  std::string_view title;  // in sentences
  UpdatedParameters updates{};
  std::int64_t moments = 0;  // the first so many of momentum and variance
  // Bytes of a moment per parameter, with the scales of its blocks; 0: those of
  // SoftwareParts::optimizer_dtype.
  double moment_bytes = 0;
  // Passes with KernelFusion::kTorch, or always; without launches an update is one kernel.
  UpdatePasses unfused = {};
  bool is_never_fused = false;
  // Whether the reference model trains with the optimizer. If not, AdamW is traced, and the bytes
  // of state and update are replaced by those of this row.
  bool is_executed = false;
  // Whether an update needs a whole matrix. Shards of state then end at tensor borders (ZeRO 1:
  // every tensor has one owner), or updates are gathered (ZeRO 2 and 3).
  bool needs_whole_matrices = false;
  bool can_offload = false;  // the host can keep the state and update the weights
  std::string_view ops;      // of an update
  std::string_view keeps = "both moments of Adam";
  // Collectives of an update by ZeRO stage, besides gradient reduction and weight gather.
  std::array<std::string_view, 4> collectives = {};
  // In files of other programs, as matches_any() reads them; that of the Trainer first.
  std::string_view names = {};
};

// Names of AdamW in files of other programs. Adam differs in weight decay only.
inline constexpr std::string_view kAdamNames = "adam Adam adamw AdamW adamW";

const OptimizerRow& row_of(OptimizerKind kind);

// Returns the optimizer of a parameter if `kind` is the optimizer of the run.
OptimizerKind updater_of(OptimizerKind kind, bool is_block_matrix);

// Whether an optimizer keeps the tensor. The master weights also depend on the software.
bool keeps(OptimizerKind updater, StateTensor tensor);

// Returns the bytes of state per parameter that `updater` itself updates.
double state_bytes(OptimizerKind updater, const SoftwareParts& parts, DType dtype);

// Returns the bytes of state of a whole model without copies.
double state_bytes(const ModelSpec& model, const StackSpec& stack, DType dtype);

// Returns the row of the optimizer that a trace of `kind` runs.
const OptimizerRow& traced_row(OptimizerKind kind);

// Returns the bytes of a moment per parameter.
double moment_bytes(const OptimizerRow& row, DType dtype);

// Returns "both moments of Adam in fp32", or what the optimizer keeps instead.
std::string moments_text(OptimizerKind kind, DType dtype);

// Returns the row that a name in a file of another program means; null if tpsim has none.
const OptimizerRow* optimizer_called(std::string_view name);

}  // namespace tpsim
