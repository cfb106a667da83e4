// Option names of other programs and common synonyms, for suggestions.
#include "cli/options/options.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

struct OtherNames {
  std::string_view names;  // separated by spaces
  std::string_view option;
};
// Option names of Megatron-LM, DeepSpeed, torchtitan and fine-tuning programs, and synonyms, with
// tpsim's option.
constexpr OtherNames kOtherNames[] = {
    {"--mbs --micro-batch-size --per-device-train-batch-size --per-device-batch-size",
     "--micro-batch"},
    {"--gbs --global-batch-size --batch-size", "--global-batch"},
    {"--seq-len --seq-length --sequence-length --context-length --max-length --max-seq-len "
     "--max-seq-length --model-max-length --cutoff-len --sequence-len --block-size",
     "--seq"},
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
    {"--use-flash-attn --flash-attn --flash-attention --attn-implementation",
     "write --attention flash"},
    {"--num-layers-per-virtual-pipeline-stage",
     "write --virtual-stages with the layers of a pipeline stage divided by this number"},
    {"--gradient-accumulation-steps",
     "write --global-batch with micro-batch x dp x accumulation steps"},
    {"--gpu", "write --cluster, or --profile for the GPU alone"},
    {"--format", "write --json"},
    {"--lora --peft --use-peft --adapter", "write --finetune lora"},
    {"--lora-r", "write --lora-rank"},
    {"--lora-target --lora-target-modules --target-modules", "write --lora-targets"},
    {"--use-rslora --rslora", "write --lora-scaling rslora"},
    {"--dora --use-dora",
     "DoRA is not modelled; --finetune lora has its adapters without their magnitudes"},
    {"--gradient-checkpointing --use-gradient-checkpointing --checkpoint-activations",
     "write --recompute full"},
    {"--fsdp --fsdp2 --fsdp-version",
     "write --stack pytorch-fsdp, and --zero 3 for full_shard or --zero 2 for shard_grad_op"},
    {"--deepspeed", "write --stack deepspeed-zero3, and --zero with its stage"},
    {"--use-liger-kernel --use-liger --liger-kernel --liger",
     "write --loss-head chunked for its fused linear cross entropy"},
    {"--epochs --num-epochs --num-train-epochs",
     "write tpsim campaign --tokens with the tokens of all epochs together"},
    {"--learning-rate --lr-scheduler-type --warmup-ratio --warmup-steps",
     "leave it out: it changes neither time nor memory"},
    {"--muon --use-muon", "write --optimizer muon"},
    {"--dion --shampoo --soap", "of the matrix optimizers tpsim models Muon only (--optimizer)"},
    {"--optimizer-kind --optim",
     "write --optimizer adamw, muon or another of its values; --optimizer-dtype sets the dtype of "
     "moments"},
    {"--8bit-adam --use-8bit-adam --adam-8bit --adam8bit --adamw-8bit --optim-8bit",
     "write --optimizer adamw_bnb_8bit or adamw_torchao_8bit"},
    {"--zero-bubble --enable-zero-bubble --dualpipe",
     "write --schedule zb-h1 (--stack reference); other zero-bubble schedules and DualPipe are not "
     "modelled"},
    {"--packing --pack-sequences --variable-seq-lengths",
     "sequence packing is not modelled: every sequence counts as --seq tokens"},
    {"--cpu-offloading --offload-activations",
     "write --offload-layers with the number of layers whose activations go to the host"},
    {"--fine-grained-activation-offloading",
     "offloading of single modules is not modelled; --offload-layers offloads whole layers"},
    {"--qlora --load-in-4bit --quantization-bit", "write --finetune qlora"},
    {"--load-in-8bit", "write --finetune qlora --base-dtype int8"},
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
    {"--optimizer-dtype", "8", "write --optimizer adamw_bnb_8bit or adamw_torchao_8bit"},
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
