// The table of core/plan/plan_settings.h. settings.txt describes the settings.
#include "core/base/text.h"
#include "core/plan/field_text.h"
#include "core/plan/plan_settings.h"

namespace tpsim {
namespace {

constexpr SettingValue kSomeBlocks{Setting::kRecompute,
                                   static_cast<std::int64_t>(Recompute::kBlocks)};

constexpr FieldWord word_of(DType dtype) { return {enumerator_number(dtype), name_of(dtype)}; }
constexpr std::array kFloats = {word_of(DType::kBFloat16), word_of(DType::kFloat16),
                                word_of(DType::kFloat32)};

std::span<const std::int64_t> values_in(std::string_view text, const FieldFacts& facts) {
  std::vector<std::int64_t> values;
  while (!text.empty()) values.push_back(value_in(facts, cut_off(text, " ")));
  return kept(std::move(values));
}

SettingRow described(SettingRow row, std::string_view key) {
  row.key = key;
  describe(row);
  const TableBlock& text = field_text(key);
  row.is_executed = true;
  row.role = SettingRole::kLayout;
  if (text.rest_of("role") == "variant") row.role = SettingRole::kVariant;
  if (text.rest_of("role") == "given") row.role = SettingRole::kGiven;
  row.tag = text.rest_of("tag");
  row.tried = values_in(text.rest_of("tried"), row);
  row.in_every_file = !text.has("not_in_every_file");
  row.in_every_name = text.has("in_every_name");
  row.fixed_by_plan = text.has("fixed_by_plan");
  return row;
}

template <auto... path>
SettingRow row(std::string_view key, std::span<const FieldWord> words = {}) {
  return described({field_at<Plan, path...>({.words = words}), {}, {}}, key);
}

// Also clears the number of recomputed blocks, which only Recompute::kBlocks uses.
SettingRow recompute_row() {
  SettingRow made = row<&Plan::recompute>("recompute");
  made.set = [](Plan& plan, std::int64_t value) {
    plan.recompute = static_cast<Recompute>(value);
    if (plan.recompute != Recompute::kBlocks) plan.recompute_blocks = 0;
  };
  return made;
}

SettingRow recomputed_blocks_row() {
  SettingRow made = row<&Plan::recompute_blocks>("recompute_blocks");
  made.counts_for = &kSomeBlocks;
  return made;
}

template <auto member>
SettingRow expert_row(std::string_view key) {
  SettingRow made = row<&Plan::degrees, member>(key);
  made.suits = [](const ModelSpec& model) { return has_experts(model); };
  made.needs = "experts";
  return made;
}

SettingRow list_row(std::string_view key) {
  SettingRow made;
  made.kind = FieldKind::kList;
  return described(made, key);
}

using D = ParallelDegrees;

std::vector<SettingRow> made_rows() {
  std::vector<SettingRow> rows = {
      row<&Plan::degrees, &D::tp>("tp"),
      row<&Plan::degrees, &D::pp>("pp"),
      row<&Plan::degrees, &D::dp>("dp"),
      row<&Plan::degrees, &D::cp>("cp"),
      expert_row<&D::ep>("ep"),
      expert_row<&D::etp>("etp"),
      row<&Plan::zero>("zero"),
      row<&Plan::micro_batch>("micro_batch"),
      row<&Plan::virtual_stages>("virtual_stages"),
      recompute_row(),
      recomputed_blocks_row(),
      row<&Plan::sequence_parallel>("sequence_parallel"),
      row<&Plan::attention>("attention"),
      row<&Plan::schedule>("schedule"),
      row<&Plan::rank_order>("rank_order"),
      row<&Plan::offload>("offload"),
      row<&Plan::dtype>("dtype", kFloats),
      row<&Plan::gradient_dtype>("gradient_dtype", kFloats),
      row<&Plan::precision>("precision"),
      row<&Plan::fp8_param_gather>("fp8_param_gather"),
      row<&Plan::global_batch>("global_batch"),
      list_row("stage_layers"),
  };
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].setting = static_cast<Setting>(i);
  return rows;
}

}  // namespace

std::span<const SettingRow> setting_rows() {
  static const std::vector<SettingRow> kRows = made_rows();
  return kRows;
}

}  // namespace tpsim
