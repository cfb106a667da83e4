#include "core/software/optimizer_kinds.h"

#include "core/base/text.h"

namespace tpsim {
namespace {

constexpr std::array<OptimizerRow, 2> kOptimizers = {{
    {.kind = OptimizerKind::kAdamW,
     .title = "AdamW",
     .updates = UpdatedParameters::kAll,
     .moments = 2,
     .can_offload = true,
     .ops = "one pass over weights, gradients and both moments",
     .names = kAdamNames},
    {.kind = OptimizerKind::kMuon,
     .title = "Muon",
     .updates = UpdatedParameters::kBlockMatrices,
     .moments = 1,
     .needs_whole_matrices = true,
     .ops = "momentum, five Newton-Schulz iterations of three GEMMs per matrix, and AdamW for the "
            "rest",
     .collectives = {"", "owners broadcast the weights of their tensors", "updates are gathered",
                     "updates are gathered"},
     .names = "muon dist_muon Muon"},
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
         static_cast<double>(row_of(updater).moments * size_of(parts.optimizer_dtype));
}

double state_bytes(const ModelSpec& model, const StackSpec& stack, DType dtype) {
  const OptimizerKind kind = stack.training.optimizer_kind;
  const auto matrices = static_cast<double>(block_matrix_parameters(model));
  const auto rest = static_cast<double>(parameter_count(model)) - matrices;
  return matrices * state_bytes(updater_of(kind, true), stack.parts, dtype) +
         rest * state_bytes(updater_of(kind, false), stack.parts, dtype);
}

std::string_view moments_text(OptimizerKind kind) {
  return row_of(kind).updates == UpdatedParameters::kAll
             ? "both moments of Adam"
             : "the momentum of matrices and both moments of Adam for the rest";
}

const OptimizerRow* optimizer_called(std::string_view name) {
  for (const OptimizerRow& row : kOptimizers) {
    if (matches_any(name, row.names)) return &row;
  }
  return nullptr;
}

}  // namespace tpsim
