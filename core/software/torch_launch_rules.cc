// Rules of torchtitan, nanotron, accelerate and DeepSpeed.
#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "core/software/launch_rule_tables.h"
#include "core/software/launch_rules.h"
#include "core/software/launched_models.h"

namespace tpsim::launch_rule_tables {
namespace {

bool splits_activations(const Plan& plan) { return plan.degrees.tp * plan.degrees.cp > 1; }

// Whether several tensor-parallel ranks share a key/value head.
bool shares_key_heads(M model, P plan) {
  return model.attention.kv_heads > 0 && plan.degrees.tp > model.attention.kv_heads;
}

// Whether an attention layer has a window or chunks.
bool has_windows(const ModelSpec& model) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  return std::any_of(blocks.begin(), blocks.end(), [](const BlockShape& block) {
    return block.attention.window > 0 || block.attention.chunk > 0;
  });
}

// Whether experts are whole under expert parallelism, and otherwise split over the tensor ranks.
bool cuts_experts_as_titan(const Plan& plan) {
  return expert_tensor_ranks(plan) == (plan.degrees.ep > 1 ? 1 : plan.degrees.tp);
}
const std::array kTorchRules = std::to_array<LaunchRule>({
    {kTitan | kNano, kPlan, [](M m, P p) { return shares_key_heads(m, p); },
     "a key/value head on several tensor ranks",
     "tp must divide the key/value heads; Megatron-Core can replicate heads"},

    // torchtitan/config/configs.py, trainer.py, distributed/parallel_dims.py, models/common/decoder.py
    // and the parallelize functions of commit b5bcd76.
    {kTitan, kModel, [](M m, P) { return has_experts(m) && !m.experts.dropless; },
     "experts with a capacity", "its router never drops tokens"},
    {kTitan, kModel,
     [](M m, P) { return !has_titan_layers(m) && m.norm_place != NormPlace::kBefore; },
     "norms that are not before each branch", "its layers have one norm before each branch"},
    {kTitan, kModel, [](M m, P) { return !has_titan_layers(m) && m.mlp != MlpKind::kSwiglu; },
     "this activation", "its feed-forward layers have SwiGLU only (models/common/feed_forward.py)"},
    {kTitan, kModel, [](M m, P) { return !has_titan_layers(m) && m.norm != NormKind::kRmsNorm; },
     "LayerNorm", "its models have RMSNorm"},
    {kTitan, kModel,
     [](M m, P) { return !has_titan_layers(m) && (m.linear_bias || attention_shape(m).qkv_bias); },
     "biases of linear layers", "its linear layers have no biases, except those of gpt-oss"},
    {kTitan, kModel, [](M m, P) { return !has_titan_layers(m) && has_windows(m); },
     "attention windows", "its attention has windows in gpt-oss and chunks in Llama 4 only"},
    {kTitan, kModel, [](M m, P) { return !has_titan_layers(m); }, "this architecture",
     "its models have the layers of LLaMA 3, Llama 4, Qwen3, DeepSeek-V3, gpt-oss or Qwen3.5"},
    {kTitan, kModel, [](M m, P) { return m.attention_dropout > 0 || m.hidden_dropout > 0; },
     "dropout", "its models do not implement dropout"},
    {kTitan, kPlan, [](M, P p) { return p.degrees.cp > 1 && p.zero < 2; },
     "ZeRO 0 or 1 with context parallelism",
     "it shards weights over context-parallel ranks: use ZeRO 2 or 3"},
    {kTitan, kPlan, [](M m, P p) { return m.family == "kimi_k2" && p.degrees.tp > 1; },
     "tensor parallelism of Kimi K2",
     "its configuration trains with DistMuon, which requires tp 1 (models/kimi_k2_7)"},
    {kTitan, kPlan,
     [](M m, P p) {
       return matches_any(m.family, "gpt_oss kimi_k2 llama4_text qwen3_5*") && p.degrees.cp > 1;
     },
     "context parallelism of this family",
     "refused in models/common/decoder.py:181, parallelize.py of kimi_k2_7 and qwen3_5, and "
     "llama4/model.py:125 of 43e52fd01: use cp 1"},
    {kTitan, kPlan, [](M m, P p) { return m.tied_embedding && p.degrees.pp > 1; },
     "tied word embeddings with a pipeline", "it refuses them: use pp 1"},
    {kTitan, kPlan, [](M m, P p) { return has_experts(m) && !cuts_experts_as_titan(p); },
     "experts split like this",
     "with expert parallelism its experts are whole, without it they are split over tensor ranks"},
    {kTitan, kPlan,
     [](M m, P p) {
       return has_experts(m) && p.zero < 2 && p.degrees.tp * p.degrees.cp % p.degrees.ep != 0;
     },
     "expert parallelism over replicas",
     "its experts are spread over ranks that shard weights: use ZeRO 2 or 3"},
    {kTitan, kPlan, [](M, P p) { return p.zero == 1; }, "ZeRO 1",
     "it shards either nothing, or also gradients and weights: use ZeRO 0, 2 or 3"},
    {kTitan, kPlan, [](M, P p) { return p.recompute == Recompute::kSelective; },
     "selective recompute", "its selective mode recomputes other ops: use --recompute ops"},
    {kTitan, kPlan, [](M, P p) { return p.recompute == Recompute::kBlocks; },
     "recompute of some blocks", "it recomputes every block or every n-th one"},
    {kTitan | kAccel, kPlan, [](M, P p) { return p.offload != Offload::kNone; },
     "an offloaded optimizer", "its CPU offload also moves weights and gradients"},
    {kTitan, kPlan, [](M, P p) { return p.attention != AttentionKind::kFlash; },
     "unfused attention", "it uses PyTorch's fused attention: use flash"},
    {kTitan, kPlan, [](M, P p) { return titan_casts_nothing(p); },
     "bf16 with tensor or pipeline parallelism and nothing sharded",
     "its mixed precision would not take effect: use ZeRO 2 or 3 with dp > 1"},
    {kTitan, kPlan, [](M, P p) { return p.dtype == DType::kFloat16; }, "fp16",
     "it trains in bfloat16 or float32"},
    {kTitan, kPlan, [](M, P p) { return p.gradient_dtype != DType::kFloat32; },
     "gradient accumulation below fp32", "it reduces gradients in float32"},
    {kTitan, kPlan, [](M, P p) { return p.rank_order != RankOrder::kTpDpPp; },
     "ranks in the order tp-pp-dp", "its mesh order is pp, dp, cp, tp, which is tp-dp-pp"},
    {kTitan, kPlan,
     [](M m, P p) {
       return splits_activations(p) && m.seq % (2 * p.degrees.tp * p.degrees.cp) != 0;
     },
     "sequences of this length", "the sequence length must be a multiple of 2 x tp x cp"},
    {kTitan, kPlan,
     [](M, P p) { return p.virtual_stages == 1 && micro_batches(p) < p.degrees.pp; },
     "fewer micro-batches than stages",
     "its schedules need at least as many micro-batches as stages"},
    {kTitan | kNano, kPlan,
     [](M, P p) { return p.schedule == ScheduleKind::kGpipe && p.degrees.pp == 1; },
     "the gpipe schedule without a pipeline", "use 1f1b"},
    {kTitan, kStages, [](M m, P p) { return missing_at_ends(m, p) < 0; }, "this split into stages",
     "its stages have equal numbers of blocks, or the first and last have one block less"},
    // nanotron's parallelism_config.py, config.py and models/llama.py.
    {kNano, kFiles, [](M m, P) { return has_experts(m); }, "experts",
     "tpsim cannot export MoE models to nanotron yet: use megatron-lm"},
    {kNano, kModel, [](M m, P) { return !has_llama_blocks(m); }, "this architecture",
     "its models are LLaMA models: rotary positions, RMSNorm, SwiGLU, no biases"},
    {kNano, kModel,
     [](M m, P) { return m.attention.heads * m.attention.head_dim != m.hidden; },
     "heads of this width", "its head_dim is always hidden / heads"},
    {kNano, kModel, [](M m, P) { return m.attention_dropout > 0 || m.hidden_dropout > 0; },
     "dropout", "its models do not implement dropout"},
    {kNano | kTrainer, kFiles, [](M, P p) { return p.degrees.cp > 1; }, "context parallelism",
     "tpsim cannot export context parallelism to this program yet"},
    {kNano | kTrainer, kPlan, [](M, P p) { return p.precision != Precision::kNone; },
     "a precision recipe", "its GEMMs are in 16 or 32 bits"},
    {kNano, kPlan, [](M, P p) { return p.offload != Offload::kNone; }, "an offloaded optimizer",
     "its optimizers stay on the GPU (config/config.py, OptimizerArgs)"},
    {kNano | kTrainer, kPlan, [](M, P p) { return p.rank_order != RankOrder::kTpDpPp; },
     "ranks in the order tp-pp-dp", "its mesh order is pipeline, data, tensor, which is tp-dp-pp"},
    {kNano | kTrainer, kPlan,
     [](M, P p) { return p.recompute != Recompute::kNone && p.recompute != Recompute::kFull; },
     "partial recompute", "it recomputes every block or none"},
    {kNano, kPlan, [](M, P p) { return p.zero > 1; }, "ZeRO 2 and 3",
     "it shards the optimizer state only: use ZeRO 0 or 1"},
    {kNano, kPlan, [](M, P p) { return p.virtual_stages > 1; }, "interleaved stages",
     "its pipelines run 1f1b or afab"},
    {kNano, kPlan, [](M, P p) { return p.attention != AttentionKind::kFlash; },
     "unfused attention", "it always uses flash attention"},
    {kNano, kStages,
     [](M m, P p) { return p.stage_layers != default_stage_layers(m.layers, p.degrees.pp); },
     "this split into stages", "it balances the stages itself: remove --stage-layers"},

    // accelerate's utils/dataclasses.py and commands/launch.py; transformers' Trainer.
    {kAccel, kPlan, [](M, P p) { return p.degrees.tp * p.degrees.pp * p.degrees.ep > 1; },
     "tensor, pipeline or expert parallelism",
     "its plans are data-parallel: use ZeRO 2 or 3 with tp 1 and pp 1"},
    {kAccel, kPlan, [](M, P p) { return p.zero == 1; }, "ZeRO 1",
     "its FSDP shards gradients too: use ZeRO 0, 2 or 3"},
    {kAccel, kPlan, [](M, P p) { return p.zero > 0 && p.degrees.dp == 1; },
     "ZeRO 1 to 3 with dp = 1", "FSDP shards over data-parallel ranks: use ZeRO 0"},
    {kTrainer, kPlan, [](M, P p) { return p.schedule != ScheduleKind::kOneFOneB; },
     "a schedule other than 1f1b", "it has no pipelines: use 1f1b"},
    {kAccel, kPlan,
     [](M, P p) {
       const bool half = p.dtype == DType::kFloat16;
       return p.gradient_dtype != (half ? DType::kFloat16 : DType::kFloat32);
     },
     "gradients of this dtype", "its gradients accumulate in fp32 for bf16 and in fp16 for fp16"},

    // DeepSpeed's runtime/engine.py and module_inject/auto_tp.py of edaa72212.
    {kDeepSpeed, kPlan, [](M, P p) { return p.degrees.pp > 1; }, "pipelines of transformers' models",
     "its pipeline engine needs a model of PipelineModule layers (runtime/pipe/module.py): use pp 1"},
    {kDeepSpeed, kFiles, [](M, P p) { return p.degrees.ep > 1; }, "expert parallelism",
     "tpsim cannot write the settings of its AutoEP yet: use ep 1"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.offload != Offload::kNone && p.zero == 0; },
     "an offloaded optimizer with ZeRO 0",
     "its offload_optimizer belongs to ZeRO (runtime/zero/config.py): use ZeRO 1 to 3"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.sequence_parallel; },
     "Megatron's sequence parallelism",
     "its AutoTP shards linear layers only (module_inject/auto_tp.py): use --sequence-parallel off"},
    {kDeepSpeed, kPlan, [](M m, P p) { return m.attention.kv_heads % p.degrees.tp != 0; },
     "a key/value head on several tensor ranks", "its AutoTP gives whole heads to the ranks"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.zero == 0 && p.gradient_dtype != p.dtype; },
     "ZeRO 0 with gradients of another dtype than the weights",
     "it refuses the mix (runtime/engine.py:2021): use ZeRO 1 to 3"},
    {kDeepSpeed, kPlan,
     [](M, P p) { return p.gradient_dtype != p.dtype && p.gradient_dtype != DType::kFloat32; },
     "gradients of this dtype", "its gradients accumulate in fp32 or in the weights' dtype"},
});

}  // namespace

std::span<const LaunchRule> torch_rules() { return kTorchRules; }

}  // namespace tpsim::launch_rule_tables
