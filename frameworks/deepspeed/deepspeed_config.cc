#include "frameworks/deepspeed/deepspeed_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

constexpr std::int64_t kLargestBatch = 1 << 20;

std::int64_t whole_at(const JsonValue& json, std::string_view key) {
  const JsonValue* value = json.find(key);
  const auto* whole = value == nullptr ? nullptr : value->as<std::int64_t>();
  return whole == nullptr || *whole > kLargestBatch ? -1 : *whole;
}

bool is_auto(const JsonValue* value) {
  const std::string* word = value == nullptr ? nullptr : value->as<std::string>();
  return word != nullptr && *word == "auto";
}

bool is_on(const JsonValue& json, std::string_view key, std::string_view name) {
  const JsonValue* section = json.find(key);
  const JsonValue* value = section == nullptr ? nullptr : section->find(name);
  const bool* on = value == nullptr ? nullptr : value->as<bool>();
  return on != nullptr && *on;
}
bool enabled_at(const JsonValue& json, std::string_view key) { return is_on(json, key, "enabled"); }

constexpr std::string_view kZeroSection = "zero_optimization.";
constexpr const char* kReduced = "communication_data_type";  // dtype of gradient reduction

// Adds unknown keys of a section to `left`. `section` is empty for the top level, or ends in a dot.
Status check_keys(const JsonValue& json, std::string_view section, const LaunchFile& file,
                  LeftSettings& left) {
  const std::string& known = fact_names("deepspeed-json", section == kZeroSection ? "zero" : "top");
  const auto* members = json.as<JsonValue::Object>();
  if (members == nullptr)
    return bad_input("the file or its zero_optimization is not a JSON object", path_of(file));
  for (const JsonMember& member : *members) {
    if (matches_any(member.key, known)) continue;
    if (member.key == "curriculum_learning") continue;  // see note_curriculum()
    left.ask(fmt::format("{}{}", section, member.key), nearest(member.key, words_in(known)),
             path_of(file));
  }
  return Ok{};
}

// Target of an offload. "none" means no offload. `known` is false for targets other than none and
// the CPU.
struct OffloadTarget {
  bool known = true;
  bool to_host = false;
};
OffloadTarget offload_target(const JsonValue& zero, std::string_view key) {
  const JsonValue* section = zero.find(key);
  if (section == nullptr) return {};
  const JsonValue* device = section->find("device");
  const std::string* name = device == nullptr ? nullptr : device->as<std::string>();
  if (name == nullptr) return {false, false};
  return {*name == "cpu" || *name == "none", *name == "cpu"};
}

Status read_zero(const JsonValue& zero, const LaunchFile& file, DeepSpeedConfig& config,
                 LeftSettings& left) {
  TPSIM_TRY_STATUS(check_keys(zero, kZeroSection, file, left));
  config.stage = whole_at(zero, "stage");
  config.lacks_prefetch = whole_at(zero, kPrefetchKey) == 0;
  const JsonValue* const overlaps = zero.find("overlap_comm");
  if (overlaps != nullptr && overlaps->as<bool>() != nullptr)
    config.overlaps = *overlaps->as<bool>();
  const OffloadTarget optimizer = offload_target(zero, "offload_optimizer");
  const JsonValue* const section = zero.find("offload_optimizer");
  for (const char* key : {"ratio", "super_offload"}) {
    const JsonValue* const value = section == nullptr ? nullptr : section->find(key);
    const std::string word = value == nullptr ? "" : to_line(*value);
    if (matches_any(word, "1 1.0 false") || word.empty()) continue;
    left.refuse(fmt::format("offload_optimizer.{}", key),
                fmt::format("offload_optimizer.{}: {}", key, word),
                "tpsim models an optimizer on the CPU as a whole only", path_of(file));
  }
  if (!optimizer.known) {
    return bad_input("zero_optimization.offload_optimizer.device must be cpu or none",
                     path_of(file), "tpsim models offload to host memory only");
  }
  const JsonValue* old = zero.find("cpu_offload");
  const bool is_old = old != nullptr && old->as<bool>() != nullptr && *old->as<bool>();
  // DeepSpeed reads offload_param at stage 3 only.
  const OffloadTarget weights =
      config.stage == 3 ? offload_target(zero, "offload_param") : OffloadTarget{};
  const bool offloads = optimizer.to_host || is_old;
  config.offload = offload_of(config.stage, offloads, weights.to_host);
  if (!weights.known || (weights.to_host && config.offload != Offload::kParameters)) {
    left.refuse(
        "zero_optimization.offload_param", "offload_param",
        "tpsim models weights in host memory with ZeRO 3 and the optimizer on the CPU only: "
        "set stage 3, and device cpu in offload_optimizer and offload_param",
        path_of(file));
  }
  return Ok{};
}

const std::string* word_at(const JsonValue& json, std::string_view section, std::string_view key) {
  const JsonValue* inner = json.find(section);
  const JsonValue* value = inner == nullptr ? nullptr : inner->find(key);
  return value == nullptr ? nullptr : value->as<std::string>();
}

void check_optimizer(const JsonValue& json, const LaunchFile& file, LeftSettings& left) {
  const std::string* kind = word_at(json, "optimizer", "type");
  if (kind == nullptr || matches_any(in_lower_case(*kind), kAdamNames)) return;
  left.refuse("optimizer.type", fmt::format("optimizer.type: {}", *kind), kAdamState,
              path_of(file));
}

// Returns the dtype that the key states. Nothing without a value.
Result<std::optional<DType>> dtype_at(const std::string* word, const char* key,
                                      const LaunchFile& file) {
  if (word == nullptr) return std::optional<DType>();
  if (*word == "fp32") return std::optional(DType::kFloat32);
  if (*word == "bf16") return std::optional(DType::kBFloat16);
  if (*word == "fp16") return std::optional(DType::kFloat16);
  return bad_input(fmt::format("{} '{}' is unknown", key, *word), path_of(file),
                   "use fp32, bf16 or fp16");
}

// Returns the dtype of torch.autocast. Nothing if the section is missing or not enabled.
Result<std::optional<DType>> autocast_at(const JsonValue& json, const LaunchFile& file) {
  if (!enabled_at(json, kAutocastSection)) return std::optional<DType>();
  const std::string* const word = word_at(json, kAutocastSection, "dtype");
  // Without a dtype, torch.autocast uses fp16 (torch/amp/autocast_mode.py).
  if (word == nullptr || matches_any(*word, "float16 torch.float16 fp16 half")) {
    return std::optional(DType::kFloat16);
  }
  if (matches_any(*word, "bfloat16 torch.bfloat16 bf16")) return std::optional(DType::kBFloat16);
  return bad_input(fmt::format("{}.dtype '{}' is unknown", kAutocastSection, *word), path_of(file),
                   "use bfloat16 or float16");
}

}  // namespace

Offload offload_of(std::int64_t stage, bool of_optimizer, bool of_weights) {
  if (!of_optimizer) return Offload::kNone;
  return of_weights && stage == 3 ? Offload::kParameters : Offload::kOptimizer;
}

Result<DeepSpeedConfig> read_deepspeed_config(const LaunchFile& file, LeftSettings& left) {
  const Result<JsonValue> parsed = parse_json(file.text, path_of(file));
  const auto unset = unset_name(file.text);
  if (!parsed.ok() && unset) {
    return bad_input(fmt::format("contains {}", why_unset(*unset)), without_marks(path_of(file)),
                     "add " + unset_remedy(*unset));
  }
  TPSIM_TRY(const JsonValue json, parsed);
  TPSIM_TRY_STATUS(check_keys(json, "", file, left));
  DeepSpeedConfig config;
  config.train_batch = whole_at(json, "train_batch_size");
  config.micro_batch = whole_at(json, "train_micro_batch_size_per_gpu");
  config.accumulation = whole_at(json, "gradient_accumulation_steps");
  check_optimizer(json, file, left);
  const std::string* const added = word_at(json, "data_types", "grad_accum_dtype");
  TPSIM_TRY(config.gradients, dtype_at(added, "data_types.grad_accum_dtype", file));
  const JsonValue* const reduced = json.find(kReduced);
  const auto* const word = reduced == nullptr ? nullptr : reduced->as<std::string>();
  TPSIM_TRY(config.reduced, dtype_at(word, kReduced, file));
  if (const JsonValue* zero = json.find("zero_optimization")) {
    TPSIM_TRY_STATUS(read_zero(*zero, file, config, left));
  }
  if (const JsonValue* tensor = json.find("tensor_parallel")) {
    config.tensor_ranks = std::max<std::int64_t>(1, whole_at(*tensor, "autotp_size"));
  }
  if (config.stage < 0 || config.stage > 3) {
    return bad_input("zero_optimization.stage is missing, or is not 0, 1, 2 or 3", path_of(file));
  }
  config.bf16 = enabled_at(json, "bf16");
  config.fp16 = enabled_at(json, "fp16");
  for (const char* key : {"bf16", "fp16"}) {
    const JsonValue* section = json.find(key);
    config.precision_is_auto |= section != nullptr && is_auto(section->find("enabled"));
  }
  config.bf16_masters = config.bf16 && is_on(json, "bf16", kBf16Masters);
  config.bf16_states = config.bf16 && is_on(json, "bf16", kBf16States);
  if (is_on(json, "fp16", "fp16_master_weights_and_grads")) {
    left.refuse("fp16.fp16_master_weights_and_grads", "fp16_master_weights_and_grads",
                "tpsim models fp16 with an fp32 copy of the weights only", path_of(file));
  }
  TPSIM_TRY(config.autocast, autocast_at(json, file));
  for (const JsonMember& member : *json.as<JsonValue::Object>()) {
    constexpr std::string_view kRead =
        "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps "
        "zero_optimization tensor_parallel data_types communication_data_type "
        "bf16 fp16 torch_autocast";
    if (!matches_any(member.key, kRead)) config.outside.push_back(member.key);
  }
  return config;
}

void note_curriculum(const LaunchFile& file, std::vector<std::string>& notes) {
  const Result<JsonValue> json = parse_json(file.text, path_of(file));
  if (!json.ok() || !enabled_at(*json, "curriculum_learning")) return;
  notes.emplace_back(
      "curriculum_learning: the prediction is that of steps with the longest sequences; earlier "
      "steps take less time and memory");
}

Status check_batches(const DeepSpeedConfig& config, const LaunchFile& file) {
  const bool has_step = config.train_batch >= 1 || config.accumulation >= 1;
  if (has_step && config.micro_batch >= 1) return Ok{};
  return bad_input("batch sizes are missing or out of range", path_of(file),
                   "set train_micro_batch_size_per_gpu, and also train_batch_size or "
                   "gradient_accumulation_steps, to numbers from 1 to 1048576");
}

void read_engine(LaunchOptionReader& in, const DeepSpeedConfig& config, bool pipelines,
                 Plan& plan) {
  in.drop("--deepspeed-config");
  if (in.has("--zero-stage")) in.expect("--zero-stage", config.stage);
  if (in.flag("--cpu-optimizer") != (config.offload != Offload::kNone)) {
    in.fail("give both --cpu-optimizer and offload_optimizer in DeepSpeed's JSON, or neither");
  }
  plan.zero = static_cast<int>(config.stage);
  if (config.gradients) plan.gradient_dtype = *config.gradients;
  if (plan.dtype == DType::kBFloat16 && plan.zero == 0 && pipelines) plan.zero = 1;
  plan.offload = config.offload;
  const std::int64_t accumulated = config.micro_batch * config.accumulation * plan.degrees.dp;
  const std::int64_t whole = config.train_batch >= 1 ? config.train_batch : accumulated;
  if (whole != plan.global_batch || config.micro_batch != plan.micro_batch) {
    in.fail(
        fmt::format("the arguments and DeepSpeed's JSON state different batch sizes: {} and {} "
                    "samples per step, {} and {} samples per micro-batch",
                    plan.global_batch, whole, plan.micro_batch, config.micro_batch));
  }
  if (config.accumulation >= 0 && whole != accumulated) {
    in.fail(
        "train_batch_size in DeepSpeed's JSON is not train_micro_batch_size_per_gpu x "
        "gradient_accumulation_steps x data-parallel ranks");
  }
  if (config.bf16 != (plan.dtype == DType::kBFloat16) ||
      config.fp16 != (plan.dtype == DType::kFloat16)) {
    in.fail("the arguments and DeepSpeed's JSON state different precisions (bf16 or fp16)");
  }
  if (config.tensor_ranks > 1)
    in.fail("Megatron-DeepSpeed does not use DeepSpeed's tensor_parallel");
  if (config.stage >= 2 && pipelines) in.fail("DeepSpeed's pipeline engine rejects ZeRO 2 and 3");
}

}  // namespace tpsim
