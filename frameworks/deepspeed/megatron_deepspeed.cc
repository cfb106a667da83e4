// Megatron-DeepSpeed: writes the arguments of pretrain_gpt.py and DeepSpeed's JSON, and reads both.
#include <fmt/format.h>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/unset_marks.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/outside_settings.h"

namespace tpsim {
namespace {

// Returns DeepSpeed's JSON configuration: a file that the script writes, one of the given files, or
// a file that the script refers to.
Result<LaunchFile> config_of(const LaunchCommand& command, const std::vector<LaunchFile>& files,
                             const ImportInputs& inputs) {
  std::string name(kDeepSpeedConfigFile);
  for (const LaunchOption& option : command.options) {
    if (option.key == "--deepspeed-config") name = without_marks(option.value);
  }
  auto beside = file_named(files, name);
  if (beside.ok() || !inputs.open) return beside;
  auto text = text_of_named(name, inputs);
  if (text) return LaunchFile{name, *std::move(text)};
  return bad_input(
      fmt::format("the script names DeepSpeed's configuration {}, which does not exist", name), "",
      "run the program that writes the file first, or put a file of that name next to the script");
}

// Adds the defaults of DeepSpeed's experts, which Megatron-LM does not have: one expert per token,
// experts in every second layer, and a capacity (megatron/arguments.py of Microsoft's fork).
void complete_experts(std::vector<LaunchOption>& options) {
  const auto number_at = [&](const char* name, std::int64_t usual) {
    return parse_number<std::int64_t>(setting_value(options, name)).value_or(usual);
  };
  if (!has_key(options, "--num-experts")) return;
  if (number_at("--num-experts", 2) < 2) {
    drop_settings(options, "--num-experts");
    return;
  }
  const auto add = [&](const char* name, std::string value) {
    if (!has_key(options, name)) options.push_back({name, std::move(value)});
  };
  const std::int64_t interval = std::max<std::int64_t>(1, number_at("--expert-interval", 2));
  std::string layers;
  for (std::int64_t i = 1; i <= number_at("--num-layers", 0); ++i) {
    layers += fmt::format("{}{}", layers.empty() ? "[" : ",", i % interval == 0 ? 1 : 0);
  }
  drop_settings(options, "--expert-interval");
  add("--moe-layer-freq", layers + "]");
  add("--moe-router-topk", "1");
  add("--moe-token-dispatcher-type", "alltoall");
  if (has_key(options, "--disable-moe-token-dropping")) return;
  add("--moe-expert-capacity-factor", "1");
  add("--moe-pad-expert-input-to-capacity", "");
}

Result<ImportedPlan> import_deepspeed(LaunchCommand command, const std::vector<LaunchFile>& files,
                                      const ImportInputs& inputs) {
  ImportedPlan result;
  const bool norm_by_name = has_key(command.options, "--layernorm-epsilon");
  const bool is_ulysses = has_key(command.options, "--ds-sequence-parallel-size");
  use_todays_names(command);
  complete_experts(command.options);
  TPSIM_TRY(LaunchFile config, config_of(command, files, inputs));
  TPSIM_TRY_STATUS(settle_model(command, inputs, result));
  TPSIM_TRY(const LaunchSize size, size_of(command, inputs));
  const bool is_forked_anew = speaks_megatron_core(command.options);
  result.stack = is_forked_anew ? "megatron-deepspeed-2023" : "megatron-deepspeed-bloom";
  if (!is_forked_anew) {
    for (LaunchOption& option : command.options) {
      if (norm_by_name && option.key == "--norm-epsilon") option.key = "--layernorm-epsilon";
    }
    if (inputs.given.contains("vocab-size")) {  // from --set; this fork does not have the option
      drop_settings(command.options, "--vocab-size");
    }
  }
  result.parts = take_deepspeed_parts(command.options);
  if (is_ulysses && setting_value(command.options, "--context-parallel-size") != "1") {
    result.parts[StackPart::kCpCommType] = static_cast<std::int64_t>(CpCommType::kA2a);
  }
  note_curriculum(config, result.notes);
  result.outside = take_outside(LaunchStack::kMegatronDeepSpeed, command.options, *inputs.left);
  take_unused_experts(result.model, command, result.outside);
  const ShellOptions shell{size, command.options, false, differences_of(command, inputs, result)};
  const ModelSpec model = with_vocab(result);
  if (is_forked_anew) {
    TPSIM_TRY(result.plan, plan_of_forked_deepspeed(shell, config, model, *inputs.left));
  } else {
    TPSIM_TRY(result.plan, plan_of_deepspeed(shell, config, model, *inputs.left));
  }
  if (result.plan.attention == AttentionKind::kFlash) {  // flash attention fuses the softmax
    result.parts.erase(StackPart::kAttentionKernel);
  }
  add_environment(command, result);
  return result;
}

class MegatronDeepSpeed final : public Framework {
 public:
  MegatronDeepSpeed()
      : Framework(LaunchStack::kMegatronDeepSpeed, Launcher::kMegatronDeepSpeed,
                  std::string(kDeepSpeedConfigFile)) {}

  bool detects_script(std::string_view text) const override {
    return text.find("--deepspeed") != std::string_view::npos;
  }
  Result<ImportedPlan> read_command(LaunchCommand command, const LaunchFile&,
                                    const std::vector<LaunchFile>& files,
                                    const ImportInputs& inputs) const override {
    return import_deepspeed(std::move(command), files, inputs);
  }

  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec&) const override {
    TPSIM_TRY(const LaunchOptions options, deepspeed_settings(file));
    return std::vector<LaunchFile>{
        shell_file(stack(), file, size, options, ordered_kernels_line(file.plan)),
        {files().back(), deepspeed_json(file)}};
  }
  std::string start_command(const ModelSpec&, const std::string& job) const override {
    return torchrun_command(job, "pretrain_gpt.py");
  }

  std::string_view judge() const override { return "megatron-deepspeed"; }
};

}  // namespace

const Framework& megatron_deepspeed() {
  static const MegatronDeepSpeed framework;
  return framework;
}

}  // namespace tpsim
