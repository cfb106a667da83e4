// Imports commands of slime, which takes Megatron's arguments and its own for generation. Source of
// rules and defaults: slime/utils/arguments.py and slime/backends/megatron_utils/arguments.py of
// THUDM/slime at 624b824.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
// Sets batch sizes and sequence length. slime packs samples of different lengths into
// --max-tokens-per-gpu tokens. The plan assumes that all samples have the stated maximum length.
void derive_slime(ProgramSettings& settings, LeftSettings&) {
  if (!settings.has("@global-batch") && settings.has("@prompts")) {
    settings.put("@global-batch", settings.number("@prompts", 1) * settings.number("@samples", 1) /
                                      settings.number("@steps", 1));
  }
  const std::int64_t tokens =
      settings.number("@tokens", 0) * settings.number("context-parallel-size", 1);
  const std::int64_t stated = settings.number("@response", 0) + settings.number("@prompt", 0);
  constexpr std::int64_t kUsualLength = 4096;  // Megatron's --seq-length, as set by slime
  std::int64_t length = settings.number("@context", stated);
  if (length == 0) length = settings.number("@seq", tokens > 0 ? tokens : kUsualLength);
  // Samples are padded so that context- and tensor-parallel ranks have equal parts.
  const std::int64_t cp = settings.number("context-parallel-size", 1);
  const std::int64_t parts =
      (cp > 1 ? 2 * cp : 1) * settings.number("tensor-model-parallel-size", 1);
  length = (length + parts - 1) / parts * parts;
  settings.put("@length", length);
  if (settings.is("@dynamic", "true") && tokens > 0) {
    settings.put_micro_batch_of(tokens);
  } else if (!settings.has("@micro-batch")) {
    settings.put("@micro-batch", 1);
  }
  settings.note(
      fmt::format("every sequence is predicted as {} tokens, the longest that the file allows: "
                  "shorter samples take less time and memory, so both are upper bounds",
                  length));
  if (settings.is("@loss", "sft_loss")) return;
  settings.note(
      "slime: only the actor's update is predicted; generation, rewards, log-probabilities and "
      "weight transfers to the rollout are not");
}

}  // namespace tpsim
