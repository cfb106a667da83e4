// Imports the example trainers of DeepSpeed-Chat and of AWS. Sources: dschat/utils/ds_utils.py and
// main.py of each step in DeepSpeedExamples at 45b4b71; pytorch/FSDP/src of
// awsome-distributed-training at 7217859.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/model/model_json.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
// Adapters of all linear layers (dschat/utils/module/lora.py). Without only_optimize_lora the other
// weights are trained too.
void put_adapters_of_chat(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t rank = settings.number("@lora", 0);
  if (rank == 0) return;
  if (!settings.is("@only-lora", "true")) {
    return left.refuse("lora_dim", fmt::format("lora_dim: {}", rank),
                       "tpsim models adapters with frozen weights only: --only_optimize_lora");
  }
  settings.put("@part.finetune", std::string("lora"));
  settings.put("@part.lora_rank", rank);
}

void derive_chat(ProgramSettings& settings, LeftSettings& left) {
  if (settings.is("bf16", "true")) settings.erase("fp16");
  put_adapters_of_chat(settings, left);
  if (!settings.has("@critic")) return;
  settings.note(
      "only the actor's update is predicted; generation, rewards, other models' updates are not");
}

// Packs of samples have one length; other samples are padded to dataset.seq_length at most.
void derive_automodel(ProgramSettings& settings, LeftSettings& left) {
  const std::string* const length =
      settings.has("@packed") ? settings.find("@packed") : settings.find("@sample");
  if (length == nullptr) {
    settings.open.ask(
        {"the file does not state the sequence length", "--set dataset.seq_length=N"});
  } else {
    settings.put("@length", *length);
  }
  const std::int64_t copies = settings.number("@replicas", 1);
  if (copies <= 1) return;
  if (settings.number("@tp", 1) * settings.number("@cp", 1) > 1) {
    left.refuse(
        "distributed.dp_replicate_size", fmt::format("dp_replicate_size: {}", copies),
        "tpsim models replicas of this program without tensor and context parallelism only");
  }
  settings.put("dp_replicate_size", copies);
  settings.put("dp_shard_size", settings.gpus() / copies);
}

// Makes the model of the sizes in the arguments, as get_model_config() does.
Result<std::vector<FlatSetting>> expand_aws(std::vector<FlatSetting> settings,
                                            const LaunchFile& file, const ImportInputs&,
                                            ProgramSettings& out) {
  const auto size = [&](const char* key, const char* usual) {
    return setting_value(settings, key, usual);
  };
  const std::string heads = size("num_heads", "12");
  const std::string kind = size("model_type", "gpt_neox");
  if (!kind.starts_with("llama_v")) return settings;
  const std::string text = fmt::format(
      R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": {}, )"
      R"("num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, )"
      R"("max_position_embeddings": {}, "rms_norm_eps": 1e-5}})",
      size("vocab_size", "50432"), size("hidden_width", "768"),
      size("intermediate_size", size("llama_intermediate_size", "11008").c_str()),
      size("num_layers", "12"), heads, size("num_key_value_heads", heads.c_str()),
      size("max_context_width", "2048"));
  TPSIM_TRY(out.model, parse_model(text, path_of(file)));
  return settings;
}

// Step 2 trains on pairs of answers. The folder of the script names the step.
Result<std::vector<FlatSetting>> expand_chat(std::vector<FlatSetting> settings,
                                             const LaunchFile& file, const ImportInputs&,
                                             ProgramSettings& out) {
  if (path_of(file).find("step2") != std::string::npos) out.put("rl", std::string("dpo"));
  return settings;
}

}  // namespace tpsim
