// Reads settings that may have one of several keys.
#include "frameworks/huggingface/trainer_keys.h"

#include <fmt/format.h>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/optimizer_kinds.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
std::optional<std::string> any_text(FlatReader& in, std::initializer_list<const char*> keys) {
  std::optional<std::string> value;
  for (const char* key : keys) {
    const auto one = in.text(key);
    if (!value) value = one;
  }
  return value;
}
bool any_flag(FlatReader& in, std::initializer_list<const char*> keys) {
  bool on = false;
  for (const char* key : keys) on |= in.flag(key, false);
  return on;
}
std::int64_t any_integer(FlatReader& in, std::initializer_list<const char*> keys) {
  std::int64_t value = -1;
  for (const char* key : keys) {
    const std::int64_t one = in.integer(key, -1);
    if (value < 0) value = one;
  }
  return value;
}

std::vector<FlatSetting> with_flat_values(std::vector<FlatSetting> settings) {
  std::vector<FlatSetting> flat;
  for (FlatSetting& one : settings) {
    const auto inside = one.value.starts_with('{') ? flat_settings({"value.json", one.value})
                                                   : Result<std::vector<FlatSetting>>(Error{});
    if (!inside.ok()) {
      flat.push_back(std::move(one));
      continue;
    }
    for (const FlatSetting& inner : *inside) {
      flat.push_back({one.key + "." + inner.key, inner.value, one.line});
    }
  }
  return flat;
}

void read_trainer_optimizer(FlatReader& in, ImportedPlan& result) {
  auto stated = any_text(in, {"optim", "optimizer"});
  if (in.flag("use_customized_optim", false)) stated = in.text("customized_optim");  // LMFlow
  const std::string optimizer = stated.value_or("adamw_torch");
  const std::string arguments = in.text("optim_args").value_or("");
  PartValues& parts = result.parts;
  if (stated == "adamw_torch_fused" || stated == "adamw_torch") {
    parts[StackPart::kOptimizerKernel] = static_cast<std::int64_t>(
        stated == "adamw_torch" ? KernelFusion::kTorch : KernelFusion::kFused);
  }
  if (optimizer == "paged_adamw_32bit") {  // the kernel of bitsandbytes
    parts[StackPart::kOptimizerKernel] = static_cast<std::int64_t>(KernelFusion::kFused);
  }
  if (optimizer.starts_with("paged_")) {
    result.notes.push_back(fmt::format(
        "{}: the state is predicted on the GPU; its pages move to the host if the GPU is full, so "
        "memory is an upper bound",
        optimizer));
  }
  if (matches_any(optimizer,
                  "adamw_torch adamw_torch_fused adamw_hf adamw_apex_fused paged_adamw_32bit")) {
    return;
  }
  const OptimizerRow* const row = optimizer_called(optimizer);
  const bool has_more = row != nullptr && row->kind == OptimizerKind::kAdafactor &&
                        arguments.find("beta1") != std::string::npos;
  if (row == nullptr || has_more) {
    in.fail(fmt::format("the optimizer {} changes the plan and is not modelled{}", optimizer,
                        has_more ? " with a first moment (beta1)" : ""),
            kAdamState);
    return;
  }
  constexpr std::string_view kMomentum = "momentum=";
  const std::size_t at = arguments.find(kMomentum);
  bool has_momentum = false;
  if (row->kind == OptimizerKind::kSgd && at != std::string::npos) {
    std::string_view rest = std::string_view(arguments).substr(at + kMomentum.size());
    has_momentum = parse_number<double>(trimmed(cut_off(rest, ","))) != 0.0;
  }
  if (row->moment_bytes > 0) parts.erase(StackPart::kOptimizerDtype);
  parts[StackPart::kOptimizerKind] =
      static_cast<std::int64_t>(has_momentum ? OptimizerKind::kSgdMomentum : row->kind);
}

void leave_out_overrides(FlatReader& in, std::vector<std::string>& outside) {
  std::erase_if(in.left(), [&](const FlatSetting& one) {
    if (!one.key.starts_with("config_overrides")) return false;
    const bool is_empty = one.value == "true" || is_unset_word(one.value);
    std::string_view rest = is_empty ? "" : std::string_view(one.value);
    while (!rest.empty()) {
      if (!trimmed(cut_off(rest, ",")).starts_with("rope_theta=")) return false;
    }
    add_outside(one.key, outside);
    return true;
  });
}

void note_empty_cache(FlatReader& in, ImportedPlan& result) {
  const bool is_emptied = in.integer("torch_empty_cache_steps", 0) > 0;
  if (!in.flag("cuda_empty_cache", false) && !is_emptied) return;
  result.notes.emplace_back(
      "the allocator's cache is emptied between steps, which tpsim does not model: a step takes "
      "longer than predicted, and reserves less memory");
}

}  // namespace tpsim
