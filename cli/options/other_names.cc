// Option names of other programs and common synonyms, for suggestions.
#include "cli/options/options.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

struct OtherNames {
  std::string_view names;  // separated by spaces
  std::string_view option;
};
// Option names of Megatron-LM, DeepSpeed and torchtitan, and synonyms, with tpsim's option.
constexpr OtherNames kOtherNames[] = {
    {"--mbs --micro-batch-size", "--micro-batch"},
    {"--gbs --global-batch-size --batch-size", "--global-batch"},
    {"--seq-len --seq-length --sequence-length --context-length", "--seq"},
    {"--tp-size --tensor-parallel --tensor-model-parallel-size", "--tp"},
    {"--pp-size --pipeline-parallel --pipeline-model-parallel-size", "--pp"},
    {"--dp-size --data-parallel --data-parallel-size", "--dp"},
    {"--cp-size --context-parallel-size", "--cp"},
    {"--ep-size --expert-model-parallel-size --expert-parallel-size", "--ep"},
    {"--vpp --num-virtual-stages-per-pipeline-rank", "--virtual-stages"},
    {"--zero-stage", "--zero"},
    {"--sp", "--sequence-parallel"},
    {"--recompute-granularity --activation-checkpointing", "--recompute"},
    {"--moe-token-dispatcher-type --moe-flex-dispatcher-backend", "--dispatcher"},
    {"--pipeline-schedule --pipeline-parallel-schedule", "--schedule"},
    {"--attention-backend", "--attention"},
    {"--num-gpus --world-size", "--gpus"},
    {"--hardware", "--cluster"},
    {"--out", "--save"},
    {"--output", "-o"},
};
constexpr std::string_view kWeightsStay =
    "tpsim keeps weights on the GPU; --offload optimizer moves the optimizer state, which is "
    "larger";
constexpr OtherNames kInstead[] = {
    {"--nodes --nnodes --num-nodes",
     "write --gpus with the number of nodes times the GPUs per node"},
    {"--bf16", "write --dtype bf16"},
    {"--fp16", "write --dtype fp16"},
    {"--fp32", "write --dtype fp32"},
    {"--use-distributed-optimizer", "write --zero 1"},
    {"--use-flash-attn", "write --attention flash"},
    {"--num-layers-per-virtual-pipeline-stage",
     "write --virtual-stages with the layers of a pipeline stage divided by this number"},
    {"--gradient-accumulation-steps",
     "write --global-batch with micro-batch x dp x accumulation steps"},
    {"--gpu", "write --cluster, or --profile for the GPU alone"},
    {"--format", "write --json"},
    {"--lora",
     "LoRA is not modelled; the plan of full fine-tuning is an upper bound for time and memory"},
    {"--muon --use-muon", "write --optimizer muon"},
    {"--dion --shampoo --soap",
     "tpsim models AdamW and Muon (--optimizer); other matrix optimizers are not modelled"},
    {"--optimizer-kind --optim",
     "write --optimizer adamw or muon; --optimizer-dtype sets the dtype of moments"},
    {"--use-8bit-adam --adam-8bit --optim-8bit",
     "8-bit Adam is not modelled; moments are fp32 or bf16 (--optimizer-dtype)"},
    {"--zero-bubble --enable-zero-bubble --dualpipe",
     "write --schedule zb-h1 (--stack reference); other zero-bubble schedules and DualPipe are not "
     "modelled"},
    {"--packing --pack-sequences --variable-seq-lengths",
     "sequence packing is not modelled: every sequence counts as --seq tokens"},
    {"--cpu-offloading --offload-activations",
     "write --offload-layers with the number of layers whose activations go to the host"},
    {"--fine-grained-activation-offloading",
     "offloading of single modules is not modelled; --offload-layers offloads whole layers"},
    {"--qlora --load-in-8bit",
     "weights have 16 or 32 bits in tpsim: use --precision fp8 for 8-bit GEMMs"},
    {"--load-in-4bit",
     "weights have 16 or 32 bits in tpsim: use --precision nvfp4 for 4-bit GEMMs"},
    {"--offload-params --offload-param", kWeightsStay},
    {"--cpu-offload", "write --offload optimizer"},
};

// Option values of other programs that plans do not support.
struct OtherValue {
  std::string_view option, part, instead;  // applies if the value contains `part`
};
constexpr std::string_view kWholeWeights =
    "weights and activations have 16 or 32 bits; --precision fp8 or nvfp4 quantizes the GEMMs";
constexpr std::string_view kNoZeroBubble =
    "of the zero-bubble schedules zb-h1 is modelled; DualPipe is not modelled";
constexpr std::string_view kNoActivations =
    "activations are offloaded by layer: write --offload-layers N";
constexpr OtherValue kOtherValues[] = {
    {"--schedule", "zero", kNoZeroBubble},
    {"--schedule", "zb", kNoZeroBubble},
    {"--schedule", "dualpipe", kNoZeroBubble},
    {"--offload", "activation", kNoActivations},
    {"--dispatcher", "flex", "flex needs its backend: write deepep or hybridep"},
    {"--optimizer-dtype", "8", "8-bit Adam is not modelled: choose fp32 or bf16"},
    {"--offload", "param", kWeightsStay},
    {"--offload", "weight", kWeightsStay},
    {"--offload", "all", kWeightsStay},
    {"--dtype", "4", kWholeWeights},
    {"--dtype", "8", kWholeWeights},
};

}  // namespace

const OptionRow* option_called(std::string_view name) {
  for (const OtherNames& other : kOtherNames) {
    if (!matches_any(name, other.names)) continue;
    for (const OptionRow& row : option_rows()) {
      if (row.name == other.option) return &row;
    }
  }
  return nullptr;
}

std::string_view possible_instead(std::string_view option, std::string_view value) {
  for (const OtherValue& other : kOtherValues) {
    if (option == other.option && value.find(other.part) != std::string_view::npos) {
      return other.instead;
    }
  }
  return "";
}

std::string_view written_instead(std::string_view name) {
  for (const OtherNames& other : kInstead) {
    if (matches_any(name, other.names)) return other.option;
  }
  return "";
}

}  // namespace tpsim::cli
