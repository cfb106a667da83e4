// Reads optimizers.txt, which describes the lines.
#include "core/software/optimizer_kinds.h"

#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/base/text_table.h"

namespace tpsim {

extern const std::span<const unsigned char> kOptimizerTable;  // optimizers.txt

namespace {

template <class Number>
Number number_in(std::string_view text) {
  const auto number = parse_number<Number>(text);
  TPSIM_CHECK(number.has_value(), "optimizers.txt: not a number: '" + std::string(text) + "'");
  return *number;
}

UpdatedParameters updates_in(std::string_view word) {
  if (word == "block_matrices") return UpdatedParameters::kBlockMatrices;
  if (word == "not_embeddings") return UpdatedParameters::kNotEmbeddings;
  TPSIM_CHECK(word.empty(), "optimizers.txt: unknown updates");
  return UpdatedParameters::kAll;
}

OptimizerRow optimizer_in(const TableBlock& block) {
  OptimizerRow row{.title = block.rest_of("title"),
                   .updates = updates_in(block.rest_of("updates")),
                   .is_never_fused = block.has("is_never_fused"),
                   .is_executed = block.has("is_executed"),
                   .needs_whole_matrices = block.has("needs_whole_matrices"),
                   .can_offload = block.has("can_offload"),
                   .ops = block.rest_of("ops"),
                   .keeps = block.rest_of("keeps"),
                   .names = block.rest_of("names")};
  if (row.names == "$adam_names") row.names = kAdamNames;
  for (auto [word, rest] : block.lines) {
    if (word == "moments") row.moments = number_in<std::int64_t>(rest);
    if (word == "moment_bytes") row.moment_bytes = number_in<double>(rest);
    if (word == "unfused") {
      row.unfused.narrow = number_in<double>(cut_off(rest, " "));
      row.unfused.wide = number_in<double>(cut_off(rest, " "));
      row.unfused.launches = number_in<std::int64_t>(rest);
    }
    if (word == "collective") {
      const auto zero = number_in<std::size_t>(cut_off(rest, " "));
      row.collectives.at(zero) = rest;
    }
  }
  return row;
}

// Returns the optimizers in the order of OptimizerKind.
const std::vector<OptimizerRow>& optimizers() {
  static const std::vector<OptimizerRow> kOptimizers = [] {
    std::vector<OptimizerRow> rows;
    for (const TableBlock& block : read_table(kOptimizerTable)) {
      rows.push_back(optimizer_in(block));
      rows.back().kind = static_cast<OptimizerKind>(rows.size() - 1);
      TPSIM_CHECK(block.name == name_of(rows.back().kind), "optimizers.txt: not in order");
    }
    return rows;
  }();
  return kOptimizers;
}

}  // namespace

std::string_view prefix_in_files(StateTensor tensor) {
  constexpr std::array<std::string_view, kStateTensors.size()> kPrefixes = {"master/", "momentum/",
                                                                            "variance/"};
  return kPrefixes[static_cast<std::size_t>(tensor)];
}

const OptimizerRow& row_of(OptimizerKind kind) {
  return optimizers()[static_cast<std::size_t>(kind)];
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
  for (const OptimizerRow& row : optimizers()) {
    if (matches_any(name, row.names)) return &row;
  }
  return nullptr;
}

}  // namespace tpsim
