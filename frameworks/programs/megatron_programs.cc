// Settings of slime, MLPerf's submissions, LLaMA-Factory and FlagScale that follow from several of
// their settings. Sources: the tables of these programs.
#include <fmt/format.h>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

// A benchmark, recognized by a part of the folder's name, with its model and sequence length in
// tokens.
struct Benchmark {
  std::string_view folder;
  std::string_view model;
  std::int64_t length;
};
constexpr Benchmark kBenchmarks[] = {
    {"llama31_405b", "llama-3.1-405b", 8192},
    {"llama31_8b", "llama-3.1-8b", 8192},
    {"gpt3", "gpt-3-175b", 2048},
};

void put_benchmark(ProgramSettings& settings, LeftSettings& left) {
  const std::string place = settings.program;
  if (place.find("lora") != std::string::npos) {
    left.refuse("LORA", fmt::format("{} trains adapters", place), kAllWeights);
  }
  for (const Benchmark& one : kBenchmarks) {
    if (place.find(one.folder) == std::string::npos) continue;
    settings.put("@model", std::string(one.model));
    if (!settings.has("@length")) settings.put("@length", one.length);
    return;
  }
  if (const std::string* size = settings.find("@size")) {
    settings.put("@model", fmt::format("llama-3.1-{}", *size));
    if (!settings.has("@length")) settings.put("@length", 8192);
  } else {
    settings.put("@model", std::string("mlperf"));
  }
}

void put_precision(ProgramSettings& settings) {
  const auto is_on = [&](const char* name) { return settings.is(name, "true 1"); };
  if (is_on("@fp8")) {
    settings.put("fp8-format", is_on("@fp8-hybrid") ? "hybrid" : "e4m3");
    const std::string* const recipe = settings.find("@fp8-recipe");
    settings.put("fp8-recipe", recipe == nullptr ? "delayed" : *recipe);
    if (is_on("@fp8-weights")) settings.put("fp8-param-gather", "true");
  }
  if (is_on("@fp4")) {
    settings.put("fp4-format", "e2m1");
    const std::string* const recipe = settings.find("@fp4-recipe");
    settings.put("fp4-recipe", recipe == nullptr ? "nvfp4" : *recipe);
  }
  if (is_on("@layer-graphs")) settings.put("external-cuda-graph", "true");
}

// Adds the file train/NAME.yaml that the list of defaults selects.
Status add_selected(std::vector<FlatSetting>& settings, const LaunchFile& file,
                    const ImportInputs& inputs) {
  for (const FlatSetting& one : std::vector<FlatSetting>(settings)) {
    if (!one.key.starts_with("defaults.") || !one.key.ends_with(".train")) continue;
    const std::string name = fmt::format("train/{}.yaml", one.value);
    const auto text = text_of_named(name, inputs);
    if (!text) return not_there(name, path_of(file));
    TPSIM_TRY(const std::vector<FlatSetting> selected, flat_settings({name, *text}));
    settings.insert(settings.end(), selected.begin(), selected.end());
  }
  return Ok{};
}

}  // namespace

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

void derive_mlperf(ProgramSettings& settings, LeftSettings& left) {
  put_benchmark(settings, left);
  put_precision(settings);
  constexpr std::int64_t kUsualChunks = 12;
  const std::int64_t chunks = settings.number("@chunks", kUsualChunks);
  if (settings.number("pipeline-model-parallel-size", 1) > 1 && chunks > 1) {
    settings.put("virtual-pipeline-model-parallel-size", chunks);
  }
  const std::int64_t replicas = settings.replicas();
  if (replicas > 0 && settings.has("@minibatch")) {
    settings.put("@global-batch", replicas * settings.number("@minibatch", 1));
  }
  if (settings.number("tensor-model-parallel-size", 1) == 1) {
    settings.erase("sequence-parallel");
    settings.erase("tp-comm-overlap");
  }
}

void derive_factory(ProgramSettings& settings, LeftSettings&) {
  const std::int64_t replicas = settings.replicas();
  const std::int64_t pass =
      settings.number("@micro-batch", 1) * settings.number("@accumulation", 1);
  if (replicas > 0) settings.put("@global-batch", replicas * pass);
  settings.note_longest();
}

// Sets the width of the gated FFN from its multiple (megatron/training/arguments.py.patch).
void derive_flagscale(ProgramSettings& settings, LeftSettings&) {
  const std::int64_t multiple = settings.number("multiple-of", 0);
  const std::int64_t hidden = settings.number("hidden-size", 0);
  const std::string* const factor = settings.find("hidden-dim-multiplier");
  const double wider = factor == nullptr ? 1 : parse_number<double>(*factor).value_or(1);
  if (multiple > 0 && settings.is("swiglu", "true") && !settings.has("ffn-hidden-size")) {
    const std::int64_t usual = 8 * hidden / 3;
    const auto width = static_cast<std::int64_t>(static_cast<double>(usual) * wider);
    settings.put("ffn-hidden-size", (width + multiple - 1) / multiple * multiple);
  }
  settings.erase("multiple-of");
  settings.erase("hidden-dim-multiplier");
}

Result<std::vector<FlatSetting>> expand_flagscale(std::vector<FlatSetting> settings,
                                                  const LaunchFile& file,
                                                  const ImportInputs& inputs,
                                                  ProgramSettings& out) {
  constexpr std::string_view kVariables = "experiment.envs.";
  TPSIM_TRY_STATUS(add_selected(settings, file, inputs));
  PartValues parts;
  std::vector<FlatSetting> all = with_lists_joined(with_values(std::move(settings), inputs.given));
  for (FlatSetting& one : all) {
    if (one.key.starts_with(kVariables)) {
      read_variable(one.key.substr(kVariables.size()), one.value, parts);
    }
    for (const std::string_view section : {"system.", "model.", "data."}) {
      if (one.key.starts_with(section)) one.key.erase(0, one.key.rfind('.') + 1);
    }
  }
  for (const auto& [part, value] : parts) {
    out.put(fmt::format("@part.{}", row_of(part).key), text_of(row_of(part), value));
  }
  return all;
}

}  // namespace tpsim
