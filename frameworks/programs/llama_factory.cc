// Imports configurations of LLaMA-Factory on Megatron-Core (mcore_adapter): one YAML with keys of
// the Trainer and of Megatron. Source of rules and defaults:
// src/llamafactory/hparams/megatron_args.py and train/mca/workflow.py of hiyouga/LLaMA-Factory at
// ff6d4d1.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
void derive_factory(ProgramSettings& settings, LeftSettings&) {
  const std::int64_t replicas = settings.replicas();
  const std::int64_t pass =
      settings.number("@micro-batch", 1) * settings.number("@accumulation", 1);
  if (replicas > 0) settings.put("@global-batch", replicas * pass);
  settings.note(
      fmt::format("every sequence is predicted as {} tokens, the maximum length: shorter "
                  "samples take less time and memory, so both are upper bounds",
                  *settings.find("@length")));
}

}  // namespace tpsim
