// Imports commands of torchtitan that select a configuration of its Python registry of 2026:
// "--module llama3 --config llama3_8b". The table has the most common entries. Source:
// torchtitan/models/llama3/config_registry.py and torchtitan/config/configs.py of
// pytorch/torchtitan at b5bcd76.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

struct TitanPreset {
  std::string_view name;
  std::string_view model;
  std::string_view flavor;
  std::string_view batch;
  std::string_view length;
  std::string_view recompute;
  std::string_view tensor_parallel;
};
constexpr TitanPreset kTitanPresets[] = {
    {"llama3_debugmodel", "llama3", "debugmodel", "8", "2048", "selective", "1"},
    {"llama3_8b", "llama3", "8B", "1", "8192", "selective", "1"},
    {"llama3_70b", "llama3", "70B", "8", "8192", "full", "8"},
};

}  // namespace

void derive_titan(ProgramSettings& settings, LeftSettings&) {
  const std::string* const named = settings.find("@preset");
  const auto preset =
      std::find_if(std::begin(kTitanPresets), std::end(kTitanPresets),
                   [&](const TitanPreset& one) { return named != nullptr && one.name == *named; });
  if (preset == std::end(kTitanPresets)) {
    settings.error = bad_input(
        fmt::format("names the configuration {} of torchtitan's Python registry, which only --run "
                    "reads",
                    named == nullptr ? "" : *named),
        "", "add --run --checkout DIR with torchtitan's sources");
    return;
  }
  const auto put = [&](std::string_view key, std::string_view value) {
    if (!settings.has(key)) settings.put(key, std::string(value));
  };
  put("model.name", preset->model);
  put("model.flavor", preset->flavor);
  put("training.seq_len", preset->length);
  put("activation_checkpoint.mode", preset->recompute);
  put("parallelism.tensor_parallel_degree", preset->tensor_parallel);
  const std::int64_t tokens = settings.number("@tokens", 0);
  const std::int64_t length = settings.number("training.seq_len", 1);
  if (tokens > 0) {
    settings.put("training.local_batch_size", std::max<std::int64_t>(1, tokens / length));
  }
  put("training.local_batch_size", preset->batch);
}

}  // namespace tpsim
