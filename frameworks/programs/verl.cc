// Imports verl's settings: the update of an actor with FSDP or Megatron-Core, or supervised
// training. Source of rules and defaults: verl/trainer/config (ppo_trainer.yaml,
// ppo_megatron_trainer.yaml, sft_trainer.yaml, engine/*.yaml) and verl/workers of volcengine/verl
// at b178a3c.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

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

}  // namespace

void derive_verl_fsdp(ProgramSettings& settings, LeftSettings&) {
  put_shards(settings);
  derive_actor(settings, settings.gpus() / settings.number("@cp", 1));
}

void derive_verl_megatron(ProgramSettings& settings, LeftSettings&) {
  derive_actor(settings, settings.replicas());
  settings.note(
      fmt::format("every sequence is predicted as {} tokens, the maximum length: shorter "
                  "samples take less time and memory, so both are upper bounds",
                  *settings.find("@length")));
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

}  // namespace tpsim
