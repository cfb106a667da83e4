#include "core/software/part_rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/software/launched_models.h"
#include "core/software/optimizer_kinds.h"

namespace tpsim {
namespace {

using M = const ModelSpec&;
using P = const Plan&;
using Stack = const StackSpec&;

constexpr std::uint8_t part_rule_bit(Launcher launcher) {
  return static_cast<std::uint8_t>(1 << static_cast<int>(launcher));
}
constexpr std::uint8_t kEveryLauncher = 0xFF;
constexpr std::uint8_t kCore = part_rule_bit(Launcher::kMegatron) | part_rule_bit(Launcher::kNemo);
constexpr std::uint8_t kTitan = part_rule_bit(Launcher::kTorchTitan);

// Whether dispatch and combine of one micro-batch overlap with the compute of another.
bool overlaps_experts(M model, P plan, Stack stack) {
  return has_experts(model) && stack.parts.ep_overlap && plan.degrees.ep > 1;
}
// Whether the number of an expert's tokens is known only when it runs.
bool has_free_experts(M model, Stack stack) {
  return has_experts(model) && model.experts.dropless && stack.parts.expert_capacity == kAnyTokens;
}
bool uses_deepep(M model, P, Stack stack) {
  return has_experts(model) && stack.parts.dispatcher == Dispatcher::kDeepEp;
}
bool recomputes(P plan, Stack stack, RecomputeModule module) {
  return plan.recompute == Recompute::kSelective &&
         holds(stack.parts.recompute_modules, bit(module));
}

// Whether a CUDA graph contains a module that backward recomputes. Dropout would need the random
// numbers of the forward pass.
bool captures_recompute(P plan, Stack stack, RecomputeModule module, GraphScope scope) {
  return recomputes(plan, stack, module) && holds(stack.parts.cuda_graphs, bit(scope));
}

const std::array kPartRules = std::to_array<PartRule>({
    {kEveryLauncher,
     [](M, P p, Stack s) {
       return p.offload == Offload::kOptimizer && !row_of(s.training.optimizer_kind).can_offload;
     },
     "an offloaded optimizer other than AdamW",
     "tpsim keeps the state of other optimizers on the GPU: use --offload none, or --optimizer adamw"},
    {kEveryLauncher,
     [](M, P, Stack s) {
       return s.parts.optimizer_dtype != DType::kFloat32 &&
              row_of(s.training.optimizer_kind).moment_bytes > 0;
     },
     "another dtype of moments with this optimizer",
     "the optimizer has its own format of moments: use --optimizer-dtype fp32"},
    {kEveryLauncher,
     [](M m, P, Stack s) { return s.training.finetune.adapts && !unadapted_part(m).empty(); },
     "adapters of this model",
     "tpsim adds adapters to attention and MLP layers only, without recurrent layers, latent "
     "attention, gated outputs and planned ops: use --finetune full"},
    {kEveryLauncher,
     [](M, P, Stack s) {
       return s.training.finetune.adapts && row_of(s.training.optimizer_kind).needs_whole_matrices;
     },
     "adapters with Muon",
     "tpsim models Muon for whole matrices: use --optimizer adamw"},
    {kEveryLauncher,
     [](M, P p, Stack s) {
       return s.training.finetune.quantizes_base() && p.precision != Precision::kNone;
     },
     "quantized frozen weights with low-precision GEMMs",
     "the GEMMs read dequantized weights in 16 bits: use --precision none, or --finetune lora"},
    {kEveryLauncher,
     [](M, P, Stack s) {
       const Finetune& tuned = s.training.finetune;
       return tuned.trains(TrainedPart::kEmbedding) != tuned.trains(TrainedPart::kHead);
     },
     "a trained embedding with a frozen head, or the reverse",
     "tpsim trains both or none: use --trained-parts embedding,head"},
    {kEveryLauncher,
     [](M, P, Stack s) {
       return !s.training.finetune.adapts && s.training.finetune.base != BaseDtype::kPlan;
     },
     "weights of few bits without adapters",
     "weights of 4 or 8 bits cannot be trained: use --finetune qlora"},
    {kEveryLauncher,
     [](M, P p, Stack s) {
       constexpr SettingValue kZbH1{Setting::kSchedule,
                                    static_cast<std::int64_t>(ScheduleKind::kZbH1)};
       return p.schedule == ScheduleKind::kZbH1 && !s.choices.only.holds(kZbH1);
     },
     "the zb-h1 schedule",
     "its file does not list zb-h1 in choices.schedule: use 1f1b or interleaved, or --stack reference"},
    {kEveryLauncher,
     [](M, P p, Stack s) {
       return p.schedule == ScheduleKind::kZbH1 && !fuses_accumulation(s.training);
     },
     "the zb-h1 schedule with gradients in separate buffers",
     "each micro-batch that awaits its weight gradients would hold a buffer: use "
     "--gradient-accumulation fused or overwriting"},
    // megatron/core/transformer/transformer_config.py of Megatron-LM d98e8a6, __post_init__.
    {kCore,
     [](M, P p, Stack s) { return s.training.optimizer_kind == OptimizerKind::kMuon && p.zero >= 2; },
     "Muon with ZeRO 2 or 3",
     "Megatron-Core refuses it (training/arguments.py:1739): use --zero 0 or 1"},
    {kCore,
     [](M m, P p, Stack s) {
       const bool whole = p.recompute == Recompute::kFull || p.recompute == Recompute::kBlocks;
       return overlaps_experts(m, p, s) && whole;
     },
     "overlapped expert communication with full recompute",
     "Megatron-Core refuses it (transformer_config.py:3021): use --recompute none or selective, or "
     "--ep-overlap off"},
    {kCore,
     [](M m, P p, Stack s) {
       return overlaps_experts(m, p, s) && p.degrees.pp > 1 && p.virtual_stages == 1;
     },
     "overlapped expert communication in a pipeline without interleaved stages",
     "Megatron-Core refuses it (transformer_config.py:3007): use --virtual-stages 2 or more, or "
     "--ep-overlap off"},
    {kCore,
     [](M m, P p, Stack s) {
       return overlaps_experts(m, p, s) && recomputes(p, s, RecomputeModule::kMoe);
     },
     "overlapped expert communication with recompute of moe",
     "Megatron-Core refuses it (transformer_config.py:3030): recompute moe_act, or use "
     "--ep-overlap off"},
    {kCore,
     [](M m, P p, Stack s) {
       return overlaps_experts(m, p, s) && s.parts.dispatcher == Dispatcher::kAllGather;
     },
     "overlapped expert communication with the allgather dispatcher",
     "Megatron-Core refuses it (transformer_config.py:3016): use --dispatcher alltoall, deepep or "
     "hybridep"},
    {kCore,
     [](M m, P p, Stack s) { return overlaps_experts(m, p, s) && p.dtype == DType::kFloat32; },
     "overlapped expert communication in fp32",
     "Megatron-Core refuses it (transformer_config.py:3034): use bf16 or fp16"},
    {kCore,
     [](M m, P p, Stack s) { return overlaps_experts(m, p, s) && m.ends.prediction_layers > 1; },
     "overlapped expert communication with more than one MTP layer",
     "Megatron-Core refuses it (transformer_config.py:3042): use at most one MTP layer, or "
     "--ep-overlap off"},
    {kCore,
     [](M, P p, Stack s) {
       return p.precision == Precision::kFp8 &&
              (recomputes(p, s, RecomputeModule::kExpertActivation) ||
               recomputes(p, s, RecomputeModule::kLayerNorm));
     },
     "recompute of moe_act or layernorm with fp8 delayed scaling",
     "Megatron-Core refuses it (transformer_config.py:2000): use --precision fp8-current, or other "
     "--recompute-modules"},
    {kCore,
     [](M m, P p, Stack s) {
       return attention_shape(m).latent.kv_rank == 0 && recomputes(p, s, RecomputeModule::kLatentUp);
     },
     "recompute of mla_up_proj without latent attention",
     "Megatron-Core refuses it (transformer_config.py:1969): use other --recompute-modules", true},
    {kCore,
     [](M m, P p, Stack s) {
       return has_experts(m) && s.parts.expert_kernel == ExpertKernel::kLooped &&
              recomputes(p, s, RecomputeModule::kExpertActivation);
     },
     "recompute of moe_act with one GEMM per expert",
     "Megatron-Core refuses it (transformer_config.py:1964): use --expert-kernel grouped, or other "
     "--recompute-modules"},
    {kCore,
     [](M, P p, Stack s) {
       return s.parts.offload_layers > 0 &&
              (p.degrees.pp > 1 || p.recompute != Recompute::kNone || s.parts.cuda_graphs != 0);
     },
     "offloaded activations with a pipeline, recompute or CUDA graphs",
     "Megatron-Core refuses it (transformer_config.py:1884): use --pp 1, --recompute none and "
     "--cuda-graph-scope none"},
    {kCore,
     [](M m, P p, Stack s) {
       return m.attention.chosen > 0 && p.degrees.cp > 1 &&
              s.parts.cp_comm_type != CpCommType::kAllGather;
     },
     "sparse attention with context parallelism other than all-gather",
     "Megatron-Core refuses it (transformer_config.py:3164): use --cp-comm-type all_gather, or "
     "--cp 1"},
    {kCore,
     [](M, P p, Stack s) {
       return has_replicas(p) && p.zero > 0 && s.training.overlap_parameter_gather &&
              !s.training.overlap_gradient_reduction;
     },
     "overlapped parameter gathers without overlapped gradient reductions",
     "Megatron-Core refuses it (training/arguments.py:1028): use --overlap-gradient-reduction on, "
     "or --overlap-parameter-gather off",
     true},
    {kCore,
     [](M, P p, Stack s) { return s.parts.optimizer_dtype != DType::kFloat32 && p.zero != 1; },
     "16-bit moments without ZeRO 1",
     "Megatron-Core's precision-aware optimizer needs the distributed optimizer "
     "(core/optimizer/__init__.py:1057): use --zero 1",
     true},
    {kCore,
     [](M, P, Stack s) {
       return s.parts.optimizer_dtype != DType::kFloat32 &&
              s.training.optimizer_kind == OptimizerKind::kMuon;
     },
     "16-bit moments with Muon",
     "Megatron-Core refuses it (core/optimizer/optimizer_config.py:436): use --optimizer-dtype fp32",
     true},
    {part_rule_bit(Launcher::kNemo),
     [](M, P p, Stack s) {
       return s.parts.optimizer_dtype != DType::kFloat32 && p.dtype == DType::kFloat32;
     },
     "16-bit moments with fp32 weights",
     "Megatron-Bridge refuses it (training/config.py:2176): use --optimizer-dtype fp32",
     true},
    {kCore,
     [](M, P p, Stack s) {
       return p.degrees.pp == 2 && p.virtual_stages > 1 && !s.parts.overlap_p2p;
     },
     "interleaved stages of pp 2 without overlapped transfers",
     "Megatron-Core refuses it (training/arguments.py:1006): use --overlap-p2p on, or pp above 2"},
    {kCore,
     [](M m, P p, Stack s) {
       const bool sends = expert_tensor_ranks(p) * p.degrees.ep > 1;
       return has_experts(m) && s.parts.dispatcher == Dispatcher::kDeepEp && !sends;
     },
     "DeepEP in a group of one rank",
     "Megatron-Core refuses it (transformer/moe/token_dispatcher.py:1836): use --dispatcher "
     "alltoall, or ep above 1"},
    {kCore,
     [](M m, P, Stack s) {
       return has_experts(m) && s.parts.expert_capacity != kAnyTokens &&
              s.parts.dispatcher != Dispatcher::kHybridEp;
     },
     "expert buffers of a fixed size without HybridEP",
     "Megatron-Core refuses it (transformer_config.py:1868): use --dispatcher hybridep",
     true},
    {kCore,
     [](M m, P, Stack s) {
       const std::int64_t graphs = s.parts.cuda_graphs;
       const bool is_by_module = graphs != kGraphsOfStep && graphs != kGraphsOfLayers;
       return has_free_experts(m, s) && is_by_module && holds(graphs, bit(GraphScope::kMoe));
     },
     "CUDA graphs of dropless experts",
     "Megatron-Core refuses it (transformer_config.py:2842): use moe_router instead of moe",
     true},
    {kCore,
     [](M, P p, Stack s) {
       const bool whole = p.recompute == Recompute::kFull || p.recompute == Recompute::kBlocks;
       return whole && s.parts.cuda_graphs != 0 && s.parts.cuda_graphs != kGraphsOfStep;
     },
     "CUDA graphs of modules with full recompute",
     "Megatron-Core refuses it (transformer_config.py:2857): use --recompute none or selective, or "
     "--cuda-graph-scope full_iteration",
     true},
    {kCore,
     [](M m, P p, Stack s) {
       const auto captures = [&](RecomputeModule module, GraphScope scope) {
         return captures_recompute(p, s, module, scope);
       };
       return (m.attention_dropout > 0 &&
               captures(RecomputeModule::kCoreAttention, GraphScope::kAttention)) ||
              (m.hidden_dropout > 0 && (captures(RecomputeModule::kMlp, GraphScope::kMlp) ||
                                        captures(RecomputeModule::kMoe, GraphScope::kMoe)));
     },
     "CUDA graphs of recomputed modules with dropout",
     "Megatron-Core refuses it (transformer_config.py:2878): use --recompute none, or a model file "
     "with attention_dropout 0 and hidden_dropout 0",
     true},
    {kCore,
     [](M m, P, Stack s) {
       return has_free_experts(m, s) && s.parts.cuda_graphs == kGraphsOfStep;
     },
     "CUDA graphs of the whole step with dropless experts",
     "its dispatcher copies numbers of tokens to the host (transformer/moe/token_dispatcher.py:921): "
     "use --dispatcher hybridep with --expert-capacity",
     true},
    {kCore,
     [](M m, P, Stack s) {
       return has_experts(m) && s.parts.expert_stash != kNoStash &&
              s.parts.expert_capacity == kAnyTokens;
     },
     "a paged stash without expert buffers of a fixed size",
     "Megatron-Core refuses it (transformer_config.py:2213): use --expert-capacity",
     true},
    {kTitan,
     [](M, P p, Stack s) {
       return p.degrees.tp > 1 && s.parts.tp_overlap == TpOverlap::kUserbuffers && !s.parts.compile;
     },
     "asynchronous tensor parallelism without torch.compile",
     "torchtitan refuses it (b5bcd76, torchtitan/config/configs.py:307): use --compile on, or "
     "--tp-overlap backward",
     true},
    // Megatron-LM d98e8a6 and Megatron-Bridge 067f987.
    {kCore, uses_deepep, "DeepEP on GB200 and GB300",
     "Megatron-Core lists HybridEP for NVLink racks (core/transformer/moe/README.md:311), and "
     "Megatron-Bridge refuses DeepEP there (training/flex_dispatcher_backend.py:97): use "
     "--dispatcher hybridep",
     true, "gb"},
    {kCore,
     [](M m, P p, Stack s) {
       constexpr std::array kRanks = {2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 144, 160};
       const std::int64_t ranks = p.degrees.ep * expert_tensor_ranks(p);
       return uses_deepep(m, p, s) && std::find(kRanks.begin(), kRanks.end(), ranks) == kRanks.end();
     },
     "DeepEP over this number of ranks",
     "DeepEP supports 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 144 and 160 ranks of ep x etp "
     "(DeepEP dd758ca, deep_ep/buffers/legacy.py:245): use another --ep, or --dispatcher alltoall",
     true},
});

bool is_of(const PartRule& rule, Launcher launcher) {
  return (rule.launchers & part_rule_bit(launcher)) != 0;
}

}  // namespace

const PartRule* broken_part_rule(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  for (const PartRule& rule : kPartRules) {
    const bool is_its = !rule.for_files_only && is_of(rule, stack.launcher);
    if (is_its && rule.is_broken(model, plan, stack)) return &rule;
  }
  return nullptr;
}

const PartRule* broken_file_rule(Launcher launcher, const StackSpec& stack, const ModelSpec& model,
                                 const Plan& plan, std::string_view gpu) {
  for (const PartRule& rule : kPartRules) {
    const bool is_its = is_of(rule, launcher) && gpu.starts_with(rule.gpus);
    if (is_its && rule.is_broken(model, plan, stack)) return &rule;
  }
  return nullptr;
}

const char* refusal_of(const PartRule& rule) {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (const PartRule& one : kPartRules) {
      all.push_back("the stack cannot run " + std::string(one.what));
    }
    return all;
  }();
  return texts[static_cast<std::size_t>(&rule - kPartRules.data())].c_str();
}

const PartRule* part_rule_of(std::string_view refusal) {
  for (const PartRule& rule : kPartRules) {
    if (refusal == refusal_of(rule)) return &rule;
  }
  return nullptr;
}

}  // namespace tpsim
