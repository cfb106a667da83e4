// Sources: peft/tuners/lora/config.py and utils/constants.py, trl/trainer/model_config.py,
// axolotl/utils/schemas/peft.py, LLaMA-Factory's hparams/finetuning_args.py.
#include "frameworks/huggingface/adapter_settings.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/finetune.h"
#include "frameworks/huggingface/trainer_keys.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

constexpr std::int64_t kQ = part_bit(WeightPart::kQuery), kK = part_bit(WeightPart::kKey),
                       kV = part_bit(WeightPart::kValue), kO = part_bit(WeightPart::kOutput),
                       kGate = part_bit(WeightPart::kGate), kUp = part_bit(WeightPart::kUp),
                       kDown = part_bit(WeightPart::kDown);

struct ModuleNames {
  std::int64_t targets;
  std::string_view names;
};
constexpr ModuleNames kModules[] = {
    {kLinearWeights, "all-linear all all_linear"},
    {kQ | kK | kV, "qkv_proj query_key_value c_attn Wqkv qkv"},
    {kQ, "q_proj wq query"},
    {kK, "k_proj wk key"},
    {kV, "v_proj wv value"},
    {kO, "o_proj wo out_proj output_proj dense self_attention.dense"},
    {kGate | kUp, "gate_up_proj"},
    {kGate, "gate_proj w1"},
    {kUp, "up_proj w3 fc1 dense_h_to_4h c_fc"},
    {kDown, "down_proj w2 fc2 dense_4h_to_h"},
};

std::string word_of(const FlatReader& in, std::string_view key) {
  return in_lower_case(setting_value(in.all(), key, std::string()));
}

bool is_on(const FlatReader& in, std::string_view key) {
  return matches_any(word_of(in, key), "true yes 1");
}

// Switches of LoRA in TRL and in programs that call peft on their own. The first use_* decides;
// the last two mean LoRA if they are on, and nothing if they are off.
constexpr const char* kSwitches[] = {"use_peft", "use_lora", "use_peft_lora", "q_lora", "qlora"};

bool says_none(const std::string& word) {
  return word.empty() || matches_any(word, "none null false no 0");
}

// The modules of the file. Without a list, peft's default for models of the LLaMA family; none if a
// program has its own settings.
std::vector<std::string> modules_of(FlatReader& in) {
  if (in.flag("lora_target_linear", false)) return {"all-linear"};
  for (const char* key : {"lora_target_modules", "lora_target", "target_modules", "trainable"}) {
    std::vector<std::string> modules = in.list(key);
    if (!modules.empty()) return modules;
  }
  if (in.has("finetuning_type")) return {"all"};
  if (in.has("use_peft") || in.has("adapter")) return {"q_proj", "v_proj"};
  return {};
}

// Whether the frozen weights have 4 or 8 bits; 0: neither.
std::int64_t bits_of_base(FlatReader& in, const std::string& kind) {
  const bool in_4 = any_flag(in, {"load_in_4bit", "use_4bit_quantization", "q_lora", "qlora"});
  const bool in_8 = any_flag(in, {"load_in_8bit", "use_8bit_quantization"});
  const std::int64_t bits = any_integer(in, {"quantization_bit", "load_in_bits", "load_in_kbits"});
  if (bits == 4 || bits == 8) return bits;
  return in_8 ? 8 : in_4 || kind == "qlora" ? 4 : 0;
}

std::int64_t percent_of(FlatReader& in, double usual) {
  const auto text = in.text("lora_dropout");
  const auto share = text ? parse_number<double>(*text) : std::optional(usual);
  if (!share || !(*share >= 0) || *share >= 1) {
    in.fail(fmt::format("lora_dropout is '{}'; it must be a number from 0 to below 1", *text));
    return 0;
  }
  return std::llround(100 * *share);
}

// Returns bits of WeightPart.
std::int64_t trained_parts(FlatReader& in) {
  std::int64_t bits = 0;
  for (const char* key : {"lora_modules_to_save", "additional_target", "modules_to_save"}) {
    for (const std::string& module : in.list(key)) {
      const bool is_embedding = matches_any(module, "embed_tokens wte embedding");
      if (is_embedding) bits |= part_bit(WeightPart::kEmbedding);
      if (module == "lm_head") bits |= part_bit(WeightPart::kHead);
    }
  }
  return bits;
}

}  // namespace

std::optional<std::string> kind_of_adapter(const FlatReader& in) {
  if (const std::string adapter = word_of(in, "adapter"); !adapter.empty()) {
    return says_none(adapter) ? "" : adapter;
  }
  if (const std::string type = word_of(in, "finetuning_type"); !type.empty()) {
    return type == "full" ? "" : type;
  }
  if (is_on(in, "full_finetuning")) return "";
  for (const char* key : kSwitches) {
    if (is_on(in, key)) return "lora";
    if (matches_any(key, "use_*") && in.has(key)) {
      const std::string word = word_of(in, key);
      return says_none(word) ? "" : word;
    }
  }
  if (in.has("peft") ? says_none(word_of(in, "peft")) : in.has("base_model")) return "";
  if (in.has("lora_r") || in.has("lora_rank")) return "lora";
  return std::nullopt;
}

std::optional<std::int64_t> targets_of_modules(const std::vector<std::string>& modules) {
  std::int64_t all = 0;
  for (const std::string& module : modules) {
    const std::string last = module.substr(module.rfind('.') + 1);
    std::int64_t targets = 0;
    for (const ModuleNames& row : kModules) {
      if (targets == 0 && matches_any(last, row.names)) targets = row.targets;
    }
    if (targets == 0) return std::nullopt;
    all |= targets;
  }
  return all;
}

void read_adapters(FlatReader& in, ImportedPlan& result) {
  const std::string kind = kind_of_adapter(in).value_or("");
  if (kind != "lora" && kind != "qlora") return;
  if (is_on(in, "use_dora") || is_on(in, "peft_use_dora")) return;
  for (const char* key : {"use_lora", "use_peft_lora", "full_finetuning"}) in.text(key);
  const std::vector<std::string> modules = modules_of(in);
  if (modules.empty()) {
    in.fail("trains LoRA adapters, but does not state in which modules",
            "add --set lora_target_modules=NAMES, for example q_proj,v_proj");
    return;
  }
  const std::optional<std::int64_t> targets = targets_of_modules(modules);
  if (!targets) return;
  const bool is_factory = in.has("finetuning_type");
  const bool is_trl = in.has("use_peft");
  for (const char* key : {"adapter", "use_peft"}) in.text(key);
  // The key remains, since it marks files of LLaMA-Factory.
  for (FlatSetting& one : in.left()) {
    if (one.key == "finetuning_type") one.value = "full";
  }
  const std::int64_t stated = any_integer(in, {"lora_r", "lora_rank"});
  const std::int64_t rank = stated > 0 ? stated : is_trl ? 16 : 8;
  const std::int64_t alpha = in.integer("lora_alpha", is_factory ? 2 * rank : is_trl ? 32 : 8);
  const std::int64_t bits = bits_of_base(in, kind);
  PartValues& parts = result.parts;
  const auto set = [&](StackPart part, auto value) {
    parts[part] = static_cast<std::int64_t>(value);
  };
  set(StackPart::kFinetune, bits > 0 ? FinetuneMethod::kQlora : FinetuneMethod::kLora);
  set(StackPart::kLoraRank, rank);
  set(StackPart::kLoraAlpha, alpha);
  set(StackPart::kLoraDropout, percent_of(in, is_trl ? 0.05 : 0));
  set(StackPart::kLoraTargets, *targets);
  if (any_flag(in, {"use_rslora", "peft_use_rslora"})) {
    set(StackPart::kLoraScaling, LoraScaling::kRankStabilized);
  }
  if (bits > 0) set(StackPart::kBaseDtype, bits == 8 ? BaseDtype::kInt8 : BaseDtype::kNf4);
  if (const std::int64_t trained = trained_parts(in); trained != 0) {
    set(StackPart::kTrainedParts, trained);
  }
  // axolotl's Triton kernels.
  if (any_flag(in, {"lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"})) {
    set(StackPart::kLoraKernel, LoraKernel::kFused);
  }
  any_flag(in, {"use_dora", "peft_use_dora"});
  std::erase_if(in.left(), [&](const FlatSetting& one) {
    if (!ignores(fact_table("adapters"), one.key)) return false;
    add_outside(one.key, result.outside);
    return true;
  });
}

}  // namespace tpsim
