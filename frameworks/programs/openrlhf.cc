// Imports commands of OpenRLHF, whose trainers all use DeepSpeed's ZeRO. Source of rules and
// defaults: openrlhf/cli/train_*.py of OpenRLHF/OpenRLHF at 3c3be62. Names of 2024, such as
// "--micro_train_batch_size", are read, too.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
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
  std::int64_t micro = settings.number("per_device_train_batch_size", generates ? 1 : kUsualMicro);
  const bool compares = settings.program.find("dpo") != std::string::npos ||
                        settings.program.find("train_rm") != std::string::npos;
  if (compares) {
    micro *= 2;
    settings.put("@global-batch", 2 * settings.number("@global-batch", 1));
    settings.note(
        "a sample is a pair of sequences, so batch sizes are doubled; the forward pass of the "
        "reference model is not predicted");
  }
  settings.put("per_device_train_batch_size", micro);
  if (!generates) return;
  if (settings.gpus() == 0) settings.put("@gpus-per-node", 8);
  settings.note(
      "only the actor's update is predicted; generation, rewards, log-probabilities, other models' "
      "updates and weight transfers to the rollout are not");
}

}  // namespace tpsim
