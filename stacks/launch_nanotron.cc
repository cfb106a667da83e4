// nanotron's YAML as its run_train.py reads it, of what a plan is made of. Rules:
// src/nanotron/config/config.py, parallelism_config.py and models_config.py; read back by
// nanotron_config.cc.
#include <fmt/format.h>

#include "stacks/config_files.h"
#include "stacks/launch_settings.h"

namespace tpsim {
namespace {

const char* dtype_word(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
    default: return "float32";
  }
}
const char* yaml_flag(bool on) { return on ? "true" : "false"; }

std::string model_text(const ModelSpec& model, const Plan& plan) {
  std::string text = fmt::format("model:\n  dtype: {}\n  make_vocab_size_divisible_by: {}\n",
                                 dtype_word(plan.dtype), model.vocab_multiple);
  text += "  model_config:\n    is_llama_config: true\n    hidden_act: silu\n";
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format("    {}: {}\n", key, value);
  };
  add("num_hidden_layers", std::to_string(model.layers));
  add("hidden_size", std::to_string(model.hidden));
  add("intermediate_size", std::to_string(model.ffn_hidden));
  add("num_attention_heads", std::to_string(model.attention.heads));
  add("num_key_value_heads", std::to_string(model.attention.kv_heads));
  add("max_position_embeddings", std::to_string(model.seq));
  add("rms_norm_eps", fmt::format("{}", model.norm_epsilon));
  add("rope_theta", fmt::format("{}", model.attention.rope_theta));
  add("tie_word_embeddings", yaml_flag(model.tied_embedding));
  add("vocab_size", std::to_string(model.vocab));
  return text;
}

}  // namespace

Result<std::string> nanotron_yaml(const PlanFile& file) {
  TPSIM_TRY_STATUS(check_launch_rules(LaunchStack::kNanotron, file));
  const Plan& plan = file.plan;
  std::string text =
      "# checkpoints, data_stages, general, logging, tokenizer, tokens.train_steps and the\n"
      "# optimizer's factory and schedule are yours.\n" +
      model_text(file.model, plan);
  text += fmt::format("optimizer:\n  accumulate_grad_in_fp32: {}\n  zero_stage: {}\n",
                      yaml_flag(plan.gradient_dtype == DType::kFloat32), plan.zero);
  text += fmt::format("parallelism:\n  dp: {}\n  pp: {}\n  pp_engine: {}\n", plan.degrees.dp,
                      plan.degrees.pp, plan.schedule == ScheduleKind::kGpipe ? "afab" : "1f1b");
  text += fmt::format("  recompute_layer: {}\n  tp: {}\n  tp_mode: {}\n",
                      yaml_flag(plan.recompute == Recompute::kFull), plan.degrees.tp,
                      plan.sequence_parallel ? "REDUCE_SCATTER" : "ALL_REDUCE");
  return text + fmt::format(
                    "tokens:\n  batch_accumulation_per_replica: {}\n  micro_batch_size: {}\n"
                    "  sequence_length: {}\n",
                    micro_batches(plan), plan.micro_batch, file.model.seq);
}

}  // namespace tpsim
