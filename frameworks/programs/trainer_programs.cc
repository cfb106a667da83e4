// Settings of verl, OpenRLHF, torchtitan's presets and the programs of examples.txt and
// automodel.txt that follow from several of their settings. Sources: the tables of these programs.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/model/model_json.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

constexpr const char* kOnlyUpdate =
    "only the actor's update is predicted; generation, rewards, log-probabilities, other models' "
    "updates and weight transfers to the rollout are not";

// Sets the numbers of sequences per step and per micro-batch. verl divides the mini-batch (prompts
// x answers) among the data-parallel ranks (workers/fsdp_workers.py).
void derive_actor(ProgramSettings& settings, std::int64_t replicas) {
  constexpr std::int64_t kUsual = 512;
  const std::int64_t prompt = settings.number("@prompt", kUsual);
  const std::int64_t length = prompt + settings.number("@response", kUsual);
  settings.put("@length", length);
  constexpr std::int64_t kUsualMini = 256;
  std::int64_t batch = settings.number("@mini", kUsualMini) * settings.number("@samples", 1);
  if (replicas > 0) batch = std::max<std::int64_t>(1, batch / replicas) * replicas;
  settings.put("@global-batch", batch);
  constexpr std::int64_t kUsualTokens = 16384;
  if (settings.is("@dynamic", "true")) {
    // Context-parallel ranks share the tokens of a micro-batch.
    const std::int64_t cp = settings.number("@cp", 1) * settings.number("context-parallel-size", 1);
    settings.put_micro_batch_of(cp * settings.number("@tokens", kUsualTokens));
  } else if (settings.has("@micro")) {
    settings.put("@micro-batch", settings.number("@micro", 1));
  } else if (settings.has("@micro-of-all") && replicas > 0) {
    settings.put("@micro-batch",
                 std::max<std::int64_t>(1, settings.number("@micro-of-all", 1) / replicas));
  } else {
    settings.open.ask({"the file does not state the actor's micro-batch",
                       "--set actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=N"});
  }
  const std::string* const advantage = settings.find("@advantage");
  if (advantage == nullptr || *advantage == "gae") {
    settings.note("a critic is trained too (adv_estimator gae); its update is not predicted");
  }
}

void put_shards(ProgramSettings& settings) {
  const std::int64_t shards = settings.number("@shards", 0);
  const std::int64_t gpus = settings.gpus();
  if (shards < 1 || gpus <= shards || gpus % shards != 0) return;
  settings.put("dp_shard_size", shards);
  settings.put("dp_replicate_size", gpus / shards);
}

// Sets replicas of FSDP's shards, and the dispatcher of experts.
void put_replicas(ProgramSettings& settings, LeftSettings& left) {
  const std::string* const dispatcher = settings.find("@dispatcher");
  if (dispatcher != nullptr && settings.number("@ep", 1) > 1) {
    settings.put("@part.dispatcher", *dispatcher);
  }
  const std::int64_t copies = settings.number("@replicas", 1);
  if (copies <= 1) return;
  if (settings.number("@tp", 1) * settings.number("@cp", 1) * settings.number("@ep", 1) > 1) {
    left.refuse("dp_replicate_size", fmt::format("dp_replicate_size: {}", copies),
                "tpsim models replicas of this program with data parallelism only");
  }
  settings.put("dp_replicate_size", copies);
  settings.put("dp_shard_size", settings.gpus() / copies);
}

}  // namespace

void derive_verl_fsdp(ProgramSettings& settings, LeftSettings&) {
  put_shards(settings);
  derive_actor(settings, settings.gpus() / settings.number("@cp", 1));
}

void derive_verl_megatron(ProgramSettings& settings, LeftSettings&) {
  derive_actor(settings, settings.replicas());
  settings.note_longest();
}

void derive_verl_sft(ProgramSettings& settings, LeftSettings&) {
  put_shards(settings);
  if (settings.gpus() == 0 && settings.has("@stated-gpus")) {
    settings.put("@gpus", settings.number("@stated-gpus", 1) * settings.number("@stated-nodes", 1));
  }
  if (settings.has("@micro-batch")) return;
  constexpr std::int64_t kUsualMicro = 4;
  const std::int64_t replicas = settings.gpus() / settings.number("@cp", 1);
  const std::int64_t of_all = settings.number("@micro-of-all", 0);
  settings.put("@micro-batch", of_all > 0 && replicas > 0
                                   ? std::max<std::int64_t>(1, of_all / replicas)
                                   : kUsualMicro);
}

// Sets the batch sizes and, for PPO, the default number of GPUs. Trainers that compare answers
// (DPO, reward models) process two sequences per sample.
void derive_openrlhf(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t ring = settings.number("@cp", 1);
  if (ring > 1 && settings.is("deepspeed_config.zero_stage", "3")) {
    settings.note("ZeRO 3 with ring attention is predicted as FSDP 2");
  } else if (ring > 1) {
    left.refuse("ds.ring_attn_size", fmt::format("ds.ring_attn_size: {}", ring),
                "tpsim models ring attention with ZeRO 3 only");
  }
  const bool generates = settings.program.find("ppo") != std::string::npos;
  constexpr std::int64_t kUsualMicro = 8;  // train_sft.py; train_ppo_ray.py: 1
  settings.put("per_device_train_batch_size",
               settings.number("per_device_train_batch_size", generates ? 1 : kUsualMicro));
  const bool compares = settings.program.find("dpo") != std::string::npos ||
                        settings.program.find("train_rm") != std::string::npos;
  if (compares) settings.double_pairs({"@global-batch", "per_device_train_batch_size"});
  if (!generates) return;
  if (settings.gpus() == 0) settings.put("@gpus-per-node", 8);
  settings.note(kOnlyUpdate);
}

void derive_titan(ProgramSettings& settings, LeftSettings&) {
  const std::string* const named = settings.find("@preset");
  const auto& presets = fact_block("torchtitan-presets").lists;
  const auto preset = std::find_if(presets.begin(), presets.end(), [&](const auto& one) {
    return named != nullptr && one.first == *named;
  });
  if (preset == presets.end()) {
    settings.error = bad_input(
        fmt::format("names the configuration {} of torchtitan's Python registry, which only --run "
                    "reads",
                    named == nullptr ? "" : *named),
        "", "add --run --checkout DIR with torchtitan's sources");
    return;
  }
  std::string batch;
  for (const std::string& stated : words_in(preset->second)) {
    const std::size_t equals = stated.find('=');
    const std::string key = stated.substr(0, equals);
    if (key == "training.local_batch_size") {
      batch = stated.substr(equals + 1);
    } else if (!settings.has(key)) {
      settings.put(key, stated.substr(equals + 1));
    }
  }
  const std::int64_t tokens = settings.number("@tokens", 0);
  const std::int64_t length = settings.number("training.seq_len", 1);
  if (tokens > 0) {
    settings.put("training.local_batch_size", std::max<std::int64_t>(1, tokens / length));
  }
  if (!settings.has("training.local_batch_size")) settings.put("training.local_batch_size", batch);
}

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
  put_replicas(settings, left);
}

void derive_nemo_rl(ProgramSettings& settings, LeftSettings& left) {
  put_replicas(settings, left);
  // A pack holds the sequences of a rank if they are fewer than a micro-batch.
  const char* const micro =
      settings.has("@micro-batch") ? "@micro-batch" : "per_device_train_batch_size";
  const std::int64_t of_rank = settings.number("@global-batch", 0) * settings.number("@tp", 1) /
                               std::max<std::int64_t>(1, settings.replicas());
  if (settings.has("@packs") && of_rank > 0 && settings.number(micro, 1) > of_rank) {
    settings.put(micro, of_rank);
  }
  if (settings.is("@pairs", "true")) settings.double_pairs({"@global-batch", "@micro-batch"});
  if (settings.has("@generates")) settings.note(kOnlyUpdate);
  if (!settings.has("@length")) {
    settings.open.ask({"the file does not state the sequence length",
                       "--set policy.max_total_sequence_length=N"});
  } else if (settings.has("@micro-batch")) {
    settings.note_longest();
  }
  if (settings.is("@chunks-loss", "true")) {
    settings.note(
        "use_fused_linear_logprobs is not modelled: logits are predicted whole, so memory is an "
        "upper bound");
  }
}

// Several GPUs train with FSDP and recompute of blocks, one without both.
void derive_litgpt(ProgramSettings& settings, LeftSettings&) {
  if (!settings.has("@length")) {
    settings.open.ask(
        {"the file does not state the sequence length", "--set train.max_seq_length=N"});
  }
  if (settings.gpus() == 1) return;
  settings.put("fsdp", std::string("full_shard"));
  settings.put("fsdp_version", 1);
  settings.put("gradient_checkpointing", std::string("true"));
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
