#include "core/software/optimizer_kinds.h"

#include "core/base/text.h"

namespace tpsim {
namespace {

// 8-bit values with an fp32 scale per block of 256, and 4-bit values with one per 128
// (bitsandbytes/optim/optimizer.py; torchao/optim/adam.py, block_size). Tensors below 4,096
// elements, which keep fp32, are not counted apart.
constexpr double kEightBits = 1 + 4.0 / 256, kFourBits = 0.5 + 4.0 / 128;
constexpr const char* kOnePass = "one pass over weights, gradients and state";

constexpr std::array<OptimizerRow, 10> kOptimizers = {{
    {.kind = OptimizerKind::kAdamW,
     .title = "AdamW",
     .updates = UpdatedParameters::kAll,
     .moments = 2,
     // foreach ops: moments, bias corrections and update.
     .unfused = {1, 19, 12},
     .is_executed = true,
     .can_offload = true,
     .ops = "one pass over weights, gradients and both moments",
     .names = kAdamNames},
    {.kind = OptimizerKind::kMuon,
     .title = "Muon",
     .updates = UpdatedParameters::kBlockMatrices,
     .moments = 1,
     .is_executed = true,
     .needs_whole_matrices = true,
     .ops = "momentum, five Newton-Schulz iterations of three GEMMs per matrix, and AdamW for the "
            "rest",
     .keeps = "the momentum of matrices and both moments of Adam for the rest",
     .collectives = {"", "owners broadcast the weights of their tensors", "updates are gathered",
                     "updates are gathered"},
     .names = "muon dist_muon Muon"},
    {.kind = OptimizerKind::kBitsAdamW8,
     .title = "8-bit AdamW of bitsandbytes",
     // The Trainer keeps the moments of embeddings in fp32 (transformers/trainer.py:1271).
     .updates = UpdatedParameters::kNotEmbeddings,
     .moments = 2,
     .moment_bytes = kEightBits,
     .ops = kOnePass,
     .keeps = "both moments of Adam in blocks of 8 bits, those of embeddings in fp32",
     .names = "adamw_bnb_8bit adamw_8bit adamw8bit paged_adamw_8bit AdamW8bit PagedAdamW8bit"},
    {.kind = OptimizerKind::kTorchAdamW8,
     .title = "8-bit AdamW of torchao",
     .moments = 2,
     .moment_bytes = kEightBits,
     .ops = kOnePass,
     .keeps = "both moments of Adam in blocks of 8 bits",
     .names = "adamw_torch_8bit ao_adamw_8bit"},
    {.kind = OptimizerKind::kTorchAdamW4,
     .title = "4-bit AdamW of torchao",
     .moments = 2,
     .moment_bytes = kFourBits,
     .ops = kOnePass,
     .keeps = "both moments of Adam in blocks of 4 bits",
     .names = "adamw_torch_4bit ao_adamw_4bit"},
    // transformers/optimization.py, Adafactor.step without a first moment: 14 ops of each tensor,
    // 20 reads and writes of all its elements. State: a row and a column of each matrix.
    {.kind = OptimizerKind::kAdafactor,
     .title = "Adafactor",
     .moments = 1,
     .moment_bytes = 4.0 / 1024,
     .unfused = {0, 20, 14},
     .is_never_fused = true,
     .ops = "squares, their means over rows and columns, the update and its norm",
     .keeps = "means of squared gradients over rows and columns",
     .names = "adafactor Adafactor"},
    {.kind = OptimizerKind::kLion,
     .title = "Lion",
     .moments = 1,
     .ops = kOnePass,
     .keeps = "the momentum",
     .names = "lion_32bit lion paged_lion_32bit Lion"},
    {.kind = OptimizerKind::kLion8,
     .title = "8-bit Lion of bitsandbytes",
     .moments = 1,
     .moment_bytes = kEightBits,
     .ops = kOnePass,
     .keeps = "the momentum in blocks of 8 bits",
     .names = "lion_8bit paged_lion_8bit"},
    {.kind = OptimizerKind::kSgd,
     .title = "SGD",
     .ops = "one pass over weights and gradients",
     .keeps = "no moments",
     .names = "sgd SGD"},
    {.kind = OptimizerKind::kSgdMomentum,
     .title = "SGD with momentum",
     .moments = 1,
     .unfused = {0, 8, 3},
     .ops = kOnePass,
     .keeps = "the momentum"},
}};

}  // namespace

std::string_view prefix_in_files(StateTensor tensor) {
  constexpr std::array<std::string_view, kStateTensors.size()> kPrefixes = {"master/", "momentum/",
                                                                            "variance/"};
  return kPrefixes[static_cast<std::size_t>(tensor)];
}

const OptimizerRow& row_of(OptimizerKind kind) {
  return kOptimizers[static_cast<std::size_t>(kind)];
}

OptimizerKind updater_of(OptimizerKind kind, bool is_block_matrix) {
  const bool is_its = row_of(kind).updates == UpdatedParameters::kAll || is_block_matrix;
  return is_its ? kind : OptimizerKind::kAdamW;
}

bool keeps(OptimizerKind updater, StateTensor tensor) {
  return static_cast<std::int64_t>(tensor) <= row_of(updater).moments;
}

double state_bytes(OptimizerKind updater, const SoftwareParts& parts, DType dtype) {
  const bool has_copy = dtype != DType::kFloat32 && updates_fp32_weights(parts, dtype);
  return (has_copy ? static_cast<double>(size_of(DType::kFloat32)) : 0) +
         static_cast<double>(row_of(updater).moments) *
             moment_bytes(row_of(updater), parts.optimizer_dtype);
}

double state_bytes(const ModelSpec& model, const StackSpec& stack, DType dtype) {
  const OptimizerKind kind = stack.training.optimizer_kind;
  const auto all = static_cast<double>(parameter_count(model));
  const bool skips_embeddings = row_of(kind).updates == UpdatedParameters::kNotEmbeddings;
  const double own = skips_embeddings ? all - static_cast<double>(model.vocab * model.hidden)
                                      : static_cast<double>(block_matrix_parameters(model));
  const double rest = all - own;
  return own * state_bytes(updater_of(kind, true), stack.parts, dtype) +
         rest * state_bytes(updater_of(kind, false), stack.parts, dtype);
}

const OptimizerRow& traced_row(OptimizerKind kind) {
  return row_of(row_of(kind).is_executed ? kind : OptimizerKind::kAdamW);
}

double moment_bytes(const OptimizerRow& row, DType dtype) {
  return row.moment_bytes > 0 ? row.moment_bytes : static_cast<double>(size_of(dtype));
}

std::string moments_text(OptimizerKind kind, DType dtype) {
  const OptimizerRow& row = row_of(kind);
  const bool has_dtype = row.moments > 0 && row.moment_bytes == 0;
  return std::string(row.keeps) + (has_dtype ? " in " + std::string(name_of(dtype)) : "");
}

const OptimizerRow* optimizer_called(std::string_view name) {
  for (const OptimizerRow& row : kOptimizers) {
    if (matches_any(name, row.names)) return &row;
  }
  return nullptr;
}

}  // namespace tpsim
