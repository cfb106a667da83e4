#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/facts.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

// Whether an export writes the option: it must exist in Megatron-Core of 2026 and have an effect in
// the plan.
using Written = bool (*)(LaunchStack, const PlanFile&);
bool is_rotary(LaunchStack, const PlanFile& file) {
  return attention_shape(file.model).position == PositionKind::kRotary;
}
// NeMo has one setting for the fused kernels of both activations, so an export writes only one of
// the two options.
bool is_gelu(LaunchStack stack, const PlanFile& file) {
  return stack != LaunchStack::kNemo && file.model.mlp == MlpKind::kGelu;
}
bool is_activation(LaunchStack stack, const PlanFile& file) {
  return stack == LaunchStack::kNemo || file.model.mlp == MlpKind::kSwiglu;
}
bool is_swiglu(LaunchStack, const PlanFile& file) { return file.model.mlp == MlpKind::kSwiglu; }
bool is_always(LaunchStack, const PlanFile&) { return true; }
bool has_sequence_parallel(LaunchStack, const PlanFile& file) {
  return file.plan.sequence_parallel;
}
bool is_interleaved(LaunchStack, const PlanFile& file) { return file.plan.virtual_stages > 1; }
bool is_flash(LaunchStack, const PlanFile& file) {
  return file.plan.attention == AttentionKind::kFlash;
}

constexpr const char* kFlashVersion = "--flash-attention-version";

struct PartOption {
  std::string_view option;
  StackPart part;
  std::string_view word;
  std::string_view value = {};   // value that the option must have; empty: any
  Written is_written = nullptr;  // null: import reads the option, export does not write it
};
constexpr PartOption kParts[] = {
    {"--no-rope-fusion", StackPart::kRotaryKernel, "torch", {}, is_rotary},
    {"--no-bias-gelu-fusion", StackPart::kActivationKernel, "torch", {}, is_gelu},
    {"--no-bias-swiglu-fusion", StackPart::kActivationKernel, "torch", {}, is_activation},
    // Import reads the rows above. The other activation is not fused for this model.
    {"--no-bias-swiglu-fusion", StackPart::kActivationKernel, "fused_gelu", {}, is_swiglu},
    {"--no-bias-gelu-fusion", StackPart::kActivationKernel, "fused_swiglu", {}, is_gelu},
    {"--no-bias-dropout-fusion", StackPart::kResidualKernel, "torch", {}, is_always},
    {"--no-gradient-accumulation-fusion",
     StackPart::kGradientAccumulation,
     "separate",
     {},
     is_always},
    {"--tp-comm-overlap", StackPart::kTpOverlap, "userbuffers", {}, has_sequence_parallel},
    {"--no-async-tensor-model-parallel-allreduce", StackPart::kTpOverlap, "none"},
    {"--no-scatter-gather-tensors-in-pipeline", StackPart::kPipelineSends, "whole"},
    {"--overlap-p2p-communication", StackPart::kOverlapP2p, "on"},
    {"--no-overlap-p2p-communication", StackPart::kOverlapP2p, "off", {}, is_interleaved},
    {"--enable-cuda-graph", StackPart::kCudaGraphs, "full"},
    {"--external-cuda-graph", StackPart::kCudaGraphs, "full"},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "none", "none", is_always},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "full", "local", is_always},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "full", "transformer_engine"},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "full_iteration", "full_iteration"},
    {"--attention-backend", StackPart::kAttentionKernel, "cudnn", "fused"},
    {kFlashVersion, StackPart::kAttentionKernel, "flash2", "2", is_flash},
    {kFlashVersion, StackPart::kAttentionKernel, "flash3", "3", is_flash},
};

// Returns the CUDA graph scopes that the options state, as a set of bits. Nothing if there are
// none.
std::optional<std::int64_t> graphs_in(const std::vector<LaunchOption>& options) {
  const LaunchOption* const scope = find_setting(options, kGraphScope);
  if (scope == nullptr) return std::nullopt;
  const Result<std::int64_t> read = parse_value(row_of(StackPart::kCudaGraphs), scope->value);
  return read.ok() ? std::optional(*read) : std::nullopt;
}

// Whether Megatron-Core refuses this combination of scopes (transformer_config.py).
bool has_refused_scopes(std::int64_t graphs) {
  const bool routes = holds(graphs, bit(GraphScope::kMoeRouter));
  return (holds(graphs, bit(GraphScope::kMoe)) && routes) ||
         (holds(graphs, bit(GraphScope::kMoePreprocess)) && !routes);
}

// Returns the scopes without those of layers that the model lacks, which Megatron-Core refuses.
std::int64_t scopes_in(const ModelSpec& model, std::int64_t graphs) {
  const bool is_by_module = graphs != kGraphsOfStep && graphs != kGraphsOfLayers;
  if (!is_by_module || has_experts(model)) return graphs;
  return graphs &
         ~(bit(GraphScope::kMoe) | bit(GraphScope::kMoeRouter) | bit(GraphScope::kMoePreprocess));
}

// Adds the options for CUDA graphs of a whole step or of some modules of a layer, which are not in
// kParts.
void add_graphs(const PlanFile& file, LaunchOptions& out) {
  const auto asked = file.parts.find(StackPart::kCudaGraphs);
  if (asked == file.parts.end()) return;
  const std::int64_t graphs = scopes_in(file.model, asked->second);
  const bool whole_step = graphs == kGraphsOfStep;
  if (!whole_step && (graphs == 0 || graphs == kGraphsOfLayers || has_refused_scopes(graphs))) {
    return;
  }
  if (whole_step) {
    out.add("--cuda-graph-impl", std::string("full_iteration"));
    out.add("--no-check-for-nan-in-loss-and-grad");  // required by an assertion
    return;
  }
  out.add("--cuda-graph-impl", std::string("transformer_engine"));
  std::string words = text_of(row_of(StackPart::kCudaGraphs), graphs);
  std::replace(words.begin(), words.end(), ',', ' ');
  out.add(kGraphScope, words);
}

// Adds the options for bf16 Adam moments, which require the distributed optimizer. Megatron-Bridge
// uses the same dtype names (utils/activation_map.py, str_to_dtype).
void add_moments(const PlanFile& file, LaunchOptions& out) {
  const auto asked = file.parts.find(StackPart::kOptimizerDtype);
  const bool narrow =
      asked != file.parts.end() && asked->second == static_cast<std::int64_t>(DType::kBFloat16);
  if (!narrow || file.plan.zero != 1) return;
  if (!offloads_optimizer(file.plan)) out.add("--use-precision-aware-optimizer");
  out.add("--exp-avg-dtype", std::string("bf16"));
  out.add("--exp-avg-sq-dtype", std::string("bf16"));
}

void add_attention(const PlanFile& file, LaunchOptions& out) {
  const auto asked = file.parts.find(StackPart::kAttentionKernel);
  const auto kernel = static_cast<AttentionKernel>(asked == file.parts.end() ? 0 : asked->second);
  const bool flash = file.plan.attention == AttentionKind::kFlash;
  std::string backend(name_of(file.plan.attention));
  if (flash && kernel == AttentionKernel::kCudnn) backend = "fused";
  // The plan has the fastest kernel of the GPU, which Transformer Engine selects.
  if (flash && (kernel == AttentionKernel::kBest || kernel == AttentionKernel::kMegatron)) {
    backend = "auto";
  }
  out.add("--attention-backend", std::move(backend));
  if (!flash && kernel == AttentionKernel::kTorch) out.add("--no-masked-softmax-fusion");
}

// Converts the arguments in a log to options. A log prints switches as True or False; False means
// that the option is absent.
void as_given(std::vector<LaunchOption>& options) {
  std::vector<LaunchOption> given;
  for (LaunchOption& option : options) {
    const std::vector<ProgramSetting>& logged = fact_table("megatron-logged").rows;
    const auto row = std::find_if(logged.begin(), logged.end(),
                                  [&](const ProgramSetting& one) { return one.key == option.key; });
    if (row != logged.end()) {
      if (option.value == row->value) given.push_back({std::string(row->becomes), ""});
      continue;
    }
    if (option.value == "False") continue;
    if (option.value == "True") option.value.clear();
    if (option.value.starts_with("['") && option.value.ends_with("']")) {  // ['p2p']
      option.value = option.value.substr(2, option.value.size() - 4);
    }
    if (option.key == "--attention-backend") {  // AttnBackend.flash
      option.value = option.value.substr(option.value.rfind('.') + 1);
    }
    given.push_back(std::move(option));
  }
  // A log also prints settings that another setting makes redundant or ineffective. Drop these.
  const auto has = [&](std::string_view name) { return has_key(given, name); };
  constexpr std::string_view kLearned = "learned_absolute";
  const bool rotates = setting_value(given, "--position-embedding-type", kLearned) != kLearned;
  std::string dropped = rotates ? "" : "--no-rope-fusion ";
  if (has("--virtual-pipeline-model-parallel-size")) {
    dropped += "--num-layers-per-virtual-pipeline-stage --num-virtual-stages-per-pipeline-rank ";
  }
  if (!has("--group-query-attention")) dropped += "--num-query-groups ";
  if (!has("--multi-latent-attention")) {
    dropped += "--kv-lora-rank --q-lora-rank --qk-head-dim --qk-pos-emb-head-dim --v-head-dim ";
  }
  if (!has("--disable-bias-linear")) dropped += "--add-qkv-bias ";
  dropped += has("--swiglu") ? "--no-bias-gelu-fusion" : "--no-bias-swiglu-fusion";
  if (!has("--cpu-offloading")) dropped += " --cpu-offloading-*";
  drop_settings(given, dropped);
  options = std::move(given);
}

}  // namespace

void use_todays_names(LaunchCommand& command) {
  if (command.is_log) as_given(command.options);
  const bool has_method = has_key(command.options, "--activations-checkpoint-method");
  std::vector<LaunchOption> named;
  for (LaunchOption& option : command.options) {
    // BigCode's fork: "multiquery" means one key/value head; other values mean multi-head
    // attention.
    if (option.key == "--attention-head-type") {
      if (option.value != "multiquery") continue;
      named.push_back({"--group-query-attention", ""});
      option = {"--num-query-groups", "1"};
    }
    std::replace(option.key.begin(), option.key.end(), '_', '-');
    if (const ProgramSetting* const row = fact_row("megatron-renamed", option.key)) {
      // In Megatron-DeepSpeed this option alone enables grouped-query attention.
      if (row->key == "--num-key-value-heads") named.push_back({"--group-query-attention", ""});
      for (const ProgramSetting& more : fact_table("megatron-renamed").rows) {
        if (more.key == row->key && &more != row) named.push_back({std::string(more.becomes), ""});
      }
      option.key = row->becomes;
      if (!row->as.empty()) option.value = row->as;
    }
    if (LaunchOption* before = find_setting(named, option.key)) {
      before->value = std::move(option.value);
    } else {
      named.push_back(std::move(option));
    }
  }
  // Megatron of 2021 recomputes whole layers if a method is stated, by default one at a time.
  if (has_method && !has_key(named, "--recompute-granularity")) {
    named.push_back({"--recompute-granularity", "full"});
    if (!has_key(named, "--recompute-num-layers")) named.push_back({"--recompute-num-layers", "1"});
  }
  // --num-experts 1 is Megatron-DeepSpeed's default and means a dense model.
  if (setting_value(named, "--num-experts") == "1") drop_settings(named, "--num-experts");
  command.options = std::move(named);
  std::vector<LaunchOption>& options = command.options;
  // MegaBlocks' fork distributes experts over the data-parallel ranks.
  if (has_key(options, "--moe-expert-model-parallelism")) {
    const auto number = [&](const char* name, std::int64_t other) {
      return parse_number<std::int64_t>(setting_value(options, name)).value_or(other);
    };
    const std::int64_t replica =
        number("--tensor-model-parallel-size", 1) * number("--pipeline-model-parallel-size", 1);
    const std::int64_t ranks = command.size.nodes * command.size.gpus_per_node / replica;
    put_setting(
        options, "--expert-model-parallel-size",
        std::to_string(std::max<std::int64_t>(1, std::min(ranks, number("--num-experts", 1)))));
    drop_settings(options, "--moe-expert-model-parallelism");
    put_setting(options, "--moe-token-dispatcher-type", "alltoall");
    put_setting(options, "--moe-grouped-gemm", "");
    if (has_key(options, "--moe-expert-capacity-factor")) {
      put_setting(options, "--moe-pad-expert-input-to-capacity", "");
    }
  }
  // With as many key/value groups as heads, attention is multi-head: drop the group options.
  const LaunchOption* heads = find_setting(options, "--num-attention-heads");
  const LaunchOption* groups = find_setting(options, "--num-query-groups");
  if (heads != nullptr && groups != nullptr && heads->value == groups->value) {
    drop_settings(options, "--num-query-groups --group-query-attention");
  }
  // Megatron of 2021 did not have a recompute method: full recompute covered all layers.
  if (setting_value(options, "--recompute-granularity") == "full" &&
      !has_key(options, "--recompute-method")) {
    options.push_back({"--recompute-method", "uniform"});
    if (!has_key(options, "--recompute-num-layers")) {
      options.push_back({"--recompute-num-layers", "1"});
    }
  }
}

Status check_program(const LaunchCommand& command, const std::string& path) {
  const auto usual =
      std::count_if(command.options.begin(), command.options.end(), [&](const LaunchOption& one) {
        std::string name = one.key.substr(std::min<std::size_t>(2, one.key.size()));
        std::replace(name.begin(), name.end(), '_', '-');
        return matches_any(name, fact_names("megatron-options", "usual"));
      });
  const bool is_megatrons = command.program.empty() || command.is_log || usual > 1 ||
                            command.program.find("pretrain") != std::string::npos;
  if (is_megatrons) return Ok{};
  return bad_input(
      fmt::format("the command starts {}, which tpsim cannot read", command.program), path,
      "tpsim reads Megatron, DeepSpeed, torchtitan, Hugging Face's Trainer (started by accelerate "
      "or torchrun), ms-swift, verl, OpenRLHF, slime, torchtune, LLaMA-Factory, axolotl and TRL; "
      "for nanotron, NeMo, GPT-NeoX and Primus, import the YAML file; for a program that runs a "
      "recipe of Megatron-Bridge, NeMo, torchtitan or OLMo-core, add --run --checkout DIR");
}

// Megatron-Core supports only unfused kernels for experts with biases (moe/experts.py:205), for
// ReLU (transformer_config.py:2421) and for DeepSeek sparse attention (transformer_config.py:3163).
bool is_forced_part(const ModelSpec& model, StackPart part) {
  if (part == StackPart::kActivationKernel) return model.mlp == MlpKind::kRelu;
  if (part == StackPart::kResidualKernel) return has_experts(model) && has_all_biases(model);
  return part == StackPart::kRotaryKernel && model.attention.chosen > 0;
}

void add_parts(LaunchStack stack, const PlanFile& file, LaunchOptions& out) {
  add_attention(file, out);
  for (const auto& [part, value] : file.parts) {
    const std::string word = text_of(row_of(part), value);
    for (const PartOption& row : kParts) {
      const bool is_it = row.part == part && row.word == word && row.is_written != nullptr;
      if (!is_it || !row.is_written(stack, file)) continue;
      out.add(std::string(row.option), std::string(row.value));
    }
  }
  for (const PartOption& row : kParts) {
    const bool is_forced = is_forced_part(file.model, row.part) && row.word == "torch";
    if (is_forced && !has_key(out.all(), row.option)) out.add(std::string(row.option));
  }
  add_graphs(file, out);
  add_moments(file, out);
}

Status take_moments(std::vector<LaunchOption>& options, PartValues& parts) {
  const auto is_narrow = [&](const char* name) {
    return matches_any(setting_value(options, name), "bf16 bfloat16 torch.bfloat16");
  };
  const bool first = is_narrow("--exp-avg-dtype"), second = is_narrow("--exp-avg-sq-dtype");
  if (!first && !second) return Ok{};
  if (first != second) {
    return bad_input("only one of --exp-avg-dtype and --exp-avg-sq-dtype is bf16", "",
                     "tpsim models both AdamW moments in fp32 or both in bf16");
  }
  drop_settings(options, "--exp-avg-dtype");
  drop_settings(options, "--exp-avg-sq-dtype");
  parts[StackPart::kOptimizerDtype] = static_cast<std::int64_t>(DType::kBFloat16);
  return Ok{};
}

PartValues take_parts(std::vector<LaunchOption>& options, const ModelSpec& model) {
  PartValues parts;
  if (LaunchOption* today = find_setting(options, "--cuda-graph-modules")) today->key = kGraphScope;
  const std::optional<std::int64_t> scopes = graphs_in(options);
  // Without CUDA graphs --cuda-graph-scope has no effect.
  const bool records = setting_value(options, "--cuda-graph-impl") != "none";
  if (!records || scopes) drop_settings(options, kGraphScope);
  for (const PartOption& row : kParts) {
    LaunchOption* const option = find_setting(options, row.option);
    if (option == nullptr || (!row.value.empty() && option->value != row.value)) continue;
    parts[row.part] = parse_value(row_of(row.part), row.word).value();
    if (row.option == "--attention-backend") {
      option->value = "flash";  // also determines the plan's attention
    } else {
      options.erase(options.begin() + (option - options.data()));
    }
  }
  if (records && scopes) parts[StackPart::kCudaGraphs] = *scopes;
  // Parts with only one kernel for the model are not a choice of the file.
  std::erase_if(parts, [&](const auto& one) { return is_forced_part(model, one.first); });
  return parts;
}

}  // namespace tpsim
