#include <algorithm>
#include <string>

#include "core/text.h"
#include "stacks/launch_command.h"

namespace tpsim {
namespace {

struct Renamed {
  std::string_view old;
  std::string_view today;
  std::string_view value = {};  // of one that becomes an option with a value
};
constexpr Renamed kRenamed[] = {
    {"--model-parallel-size", "--tensor-model-parallel-size"},
    {"--batch-size", "--micro-batch-size"},
    {"--max-absolute-position-embeddings", "--max-position-embeddings"},
    {"--recompute-activations", "--recompute-granularity", "selective"},
    {"--checkpoint-activations", "--recompute-granularity", "full"},
    {"--activations-checkpoint-method", "--recompute-method"},
    {"--checkpoint-num-layers", "--recompute-num-layers"},
    {"--activations-checkpoint-num-layers", "--recompute-num-layers"},
    {"--use-rotary-position-embeddings", "--position-embedding-type", "rope"},
    {"--rope-theta", "--rotary-base"},
    {"--layernorm-epsilon", "--norm-epsilon"},
    {"--num-key-value-heads", "--num-query-groups"},
    {"--use-custom-fsdp", "--use-megatron-fsdp"},
    {"--virtual-pipeline-model-parallel-size", "--num-virtual-stages-per-pipeline-rank"},
    {"--use-flash-attn-v1", "--use-flash-attn"},
    {"--use-flash-attn-v2", "--use-flash-attn"},
    {"--use-flash-attn-triton", "--use-flash-attn"},
    {"--use-flash-attn-builder", "--use-flash-attn"},
};

// What a log's argument is where it holds this, as the option that made it so.
struct Logged {
  std::string_view argument;
  std::string_view value;
  std::string_view option;
};
constexpr Logged kLogged[] = {
    {"--add-bias-linear", "False", "--disable-bias-linear"},
    {"--apply-rope-fusion", "False", "--no-rope-fusion"},
    {"--async-tensor-model-parallel-allreduce", "False",
     "--no-async-tensor-model-parallel-allreduce"},
    {"--bias-dropout-fusion", "False", "--no-bias-dropout-fusion"},
    {"--bias-gelu-fusion", "False", "--no-bias-gelu-fusion"},
    {"--bias-swiglu-fusion", "False", "--no-bias-swiglu-fusion"},
    {"--gradient-accumulation-fusion", "False", "--no-gradient-accumulation-fusion"},
    {"--masked-softmax-fusion", "False", "--no-masked-softmax-fusion"},
    {"--overlap-p2p-comm", "False", "--no-overlap-p2p-communication"},
    {"--scatter-gather-tensors-in-pipeline", "False", "--no-scatter-gather-tensors-in-pipeline"},
    {"--grad-reduce-in-bf16", "True", "--grad-reduce-in-bf16"},
};

struct PartOption {
  std::string_view option;
  StackPart part;
  std::string_view word;
  std::string_view value = {};  // that the option has to have; empty: any
};
constexpr PartOption kParts[] = {
    {"--no-rope-fusion", StackPart::kRotaryKernel, "torch"},
    {"--no-bias-gelu-fusion", StackPart::kActivationKernel, "torch"},
    {"--no-bias-swiglu-fusion", StackPart::kActivationKernel, "torch"},
    {"--no-bias-dropout-fusion", StackPart::kResidualKernel, "torch"},
    {"--no-gradient-accumulation-fusion", StackPart::kGradientAccumulation, "separate"},
    {"--tp-comm-overlap", StackPart::kTensorOverlap, "userbuffers"},
    {"--no-async-tensor-model-parallel-allreduce", StackPart::kTensorOverlap, "none"},
    {"--no-scatter-gather-tensors-in-pipeline", StackPart::kPipelineSends, "whole"},
    {"--overlap-p2p-communication", StackPart::kOverlapP2p, "on"},
    {"--no-overlap-p2p-communication", StackPart::kOverlapP2p, "off"},
    {"--enable-cuda-graph", StackPart::kCudaGraphs, "full"},
    {"--external-cuda-graph", StackPart::kCudaGraphs, "full"},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "none", "none"},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "full", "local"},
    {"--cuda-graph-impl", StackPart::kCudaGraphs, "full", "transformer_engine"},
    {"--cuda-graph-scope", StackPart::kCudaGraphs, "full", "full"},
    {"--cuda-graph-scope", StackPart::kCudaGraphs, "full_iteration", "full_iteration"},
    {"--attention-backend", StackPart::kAttentionKernel, "cudnn", "fused"},
};

// A switch of a log has True or False; one that is off was not given.
void as_given(std::vector<LaunchOption>& options) {
  std::vector<LaunchOption> given;
  for (LaunchOption& option : options) {
    const auto row = std::find_if(std::begin(kLogged), std::end(kLogged),
                                  [&](const Logged& one) { return one.argument == option.name; });
    if (row != std::end(kLogged)) {
      if (option.value == row->value) given.push_back({std::string(row->option), ""});
      continue;
    }
    if (option.value == "False") continue;
    if (option.value == "True") option.value.clear();
    if (option.value.starts_with("['") && option.value.ends_with("']")) {  // ['p2p']
      option.value = option.value.substr(2, option.value.size() - 4);
    }
    if (option.name == "--attention-backend") {  // AttnBackend.flash
      option.value = option.value.substr(option.value.rfind('.') + 1);
    }
    given.push_back(std::move(option));
  }
  // The log says the one by the other.
  const bool has_stages = find_option(given, "--virtual-pipeline-model-parallel-size") != nullptr;
  const bool has_groups = find_option(given, "--group-query-attention") != nullptr;
  std::erase_if(given, [&](const LaunchOption& one) {
    return (has_stages && (one.name == "--num-layers-per-virtual-pipeline-stage" ||
                           one.name == "--num-virtual-stages-per-pipeline-rank")) ||
           (!has_groups && one.name == "--num-query-groups");
  });
  // How to offload says nothing where nothing is offloaded.
  if (find_option(given, "--cpu-offloading") == nullptr) {
    std::erase_if(
        given, [](const LaunchOption& one) { return one.name.starts_with("--cpu-offloading-"); });
  }
  options = std::move(given);
}

}  // namespace

void use_todays_names(LaunchCommand& command) {
  if (command.is_log) as_given(command.options);
  std::vector<LaunchOption> named;
  for (LaunchOption& option : command.options) {
    std::replace(option.name.begin(), option.name.end(), '_', '-');
    for (const Renamed& row : kRenamed) {
      if (option.name != row.old) continue;
      option.name = row.today;
      if (!row.value.empty()) option.value = row.value;
      // That fork groups heads by this number alone.
      if (row.old == "--num-key-value-heads") named.push_back({"--group-query-attention", ""});
      break;
    }
    if (LaunchOption* before = find_option(named, option.name)) {
      before->value = std::move(option.value);
    } else {
      named.push_back(std::move(option));
    }
  }
  command.options = std::move(named);
  std::vector<LaunchOption>& options = command.options;
  // As many groups as heads are none.
  const LaunchOption* heads = find_option(options, "--num-attention-heads");
  const LaunchOption* groups = find_option(options, "--num-query-groups");
  if (heads != nullptr && groups != nullptr && heads->value == groups->value) {
    std::erase_if(options, [](const LaunchOption& one) {
      return one.name == "--num-query-groups" || one.name == "--group-query-attention";
    });
  }
  // The full recompute of 2021 was of every layer.
  const LaunchOption* recompute = find_option(options, "--recompute-granularity");
  if (recompute != nullptr && recompute->value == "full" &&
      find_option(options, "--recompute-method") == nullptr) {
    options.push_back({"--recompute-method", "uniform"});
    if (find_option(options, "--recompute-num-layers") == nullptr) {
      options.push_back({"--recompute-num-layers", "1"});
    }
  }
}

PartValues take_parts(std::vector<LaunchOption>& options) {
  PartValues parts;
  // Of graphs that are not recorded the scope says nothing.
  const LaunchOption* const graphs = find_option(options, "--cuda-graph-impl");
  if (graphs != nullptr && graphs->value == "none") drop_option(options, "--cuda-graph-scope");
  for (const PartOption& row : kParts) {
    LaunchOption* const option = find_option(options, row.option);
    if (option == nullptr || (!row.value.empty() && option->value != row.value)) continue;
    parts[row.part] = parse_value(row_of(row.part), row.word).value();
    if (row.option == "--attention-backend") {
      option->value = "flash";  // the setting says so too
    } else {
      options.erase(options.begin() + (option - options.data()));
    }
  }
  return parts;
}

}  // namespace tpsim
