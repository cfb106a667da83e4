// Rules of Megatron-LM, NeMo with Megatron-Bridge, and Megatron-DeepSpeed.
#include <array>

#include "core/base/text.h"
#include "core/software/launch_rule_tables.h"
#include "core/software/launched_models.h"

namespace tpsim::launch_rule_tables {
namespace {

constexpr std::uint8_t kOthers = kMegatronDeepSpeed | kNano;

bool is_equal_cut(const ModelSpec& model, const Plan& plan) {
  const auto is = [&](bool counts) {
    return equal_stage_layers(model.layers, plan.degrees.pp, counts) == plan.stage_layers;
  };
  return is(false) || is(true);
}

// Whether a stage starts on a layer that uses the indices of a layer of another stage
// (megatron/core/models/gpt/experimental_attention_variant_module_specs.py:424).
bool cuts_shared_indices(const ModelSpec& model, const Plan& plan) {
  const auto layers = model.attention.chosen > 0 ? indexed_layers(model) : std::nullopt;
  if (!layers || layers->frequency == 1) return false;
  std::int64_t first = 1;
  for (const std::int64_t count : plan.stage_layers) {
    if (count > 0 && shares_indices(*layers, first)) return true;
    first += count;
  }
  return false;
}

constexpr const char* kUnwritten =
    "tpsim cannot write launch files of this program for such models yet";

// Rules with scope kFiles come first: without them, the written files would train another model.
const std::array kMegatronRules = std::to_array<LaunchRule>({
    {kOthers, kFiles, [](M m, P) { return has_planned_ops(m) || m.ends.streams > 1; },
     "special parts (indexers, encoders, several residual streams)", kUnwritten},
    {kOthers, kFiles, [](M m, P) { return !m.other_blocks.empty(); }, "models whose layers differ",
     kUnwritten},
    {kOthers, kFiles, [](M m, P) { return m.norm_place != NormPlace::kBefore || m.norm_plus_one; },
     "norms that are not before each branch, or multiply by 1 + weight", kUnwritten},
    {kOthers, kFiles,
     [](M m, P) { return is_gated(m.mlp) ? m.mlp != MlpKind::kSwiglu : m.mlp != MlpKind::kGelu; },
     "activations other than GELU and SwiGLU", kUnwritten},
    {kOthers, kFiles, [](M m, P) { return !has_plain_attention(m); },
     "attention with windows, norms of q and k, latents, score caps or separate biases",
     kUnwritten},
    {kOthers, kFiles,
     [](M m, P) { return m.experts.router != RouterShape{} || m.experts.shared_ffn > 0; },
     "shared experts, or a router other than plain top-k softmax", kUnwritten},

    // Megatron-Bridge's recipe defines the layers if it has a bridge for the family.
    {kNemo, kModel, [](M m, P) { return !has_bridge(m) && !has_bridge_options(m); },
     "models of this family",
     "Megatron-Bridge has no bridge for the family (models/*/*_bridge.py), and its GPTModelProvider "
     "cannot express the layers"},
    // Models that Megatron-LM's arguments cannot express.
    {kMegatronLm, kModel, [](M m, P) { return has_encoders(m); }, "encoders",
     "pretrain_gpt.py trains text models"},
    {kMegatronLm, kModel, [](M m, P) { return !has_megatron_parts(m); },
     "per-layer tables, several residual streams or special ops in layers",
     "its attention variants are gdn, gdn2 and dsa (transformer_config.py:301)"},
    {kMegatronLm, kModel,
     [](M m, P) { return !has_megatron_layers(m) && !is_heterogeneous(m); },
     "layers that differ in more than experts, window or mixer",
     "its arguments set one shape for all experts, all windows, all mixers of a kind, and norms of q "
     "and k (gpt_layer_specs.py:328); its JSON covers LLaMA 3's layers (arguments.py:212)"},
    {kMegatronLm, kModel, [](M m, P) { return m.norm_place != NormPlace::kBefore; },
     "norms that are not before each branch",
     "its layers have one norm before each branch (transformer_layer.py:278)"},
    {kMegatronLm, kModel, [](M m, P) { return !has_megatron_activation(m); },
     "this activation",
     "its arguments support GELU, SwiGLU, squared ReLU and a clamped SwiGLU only "
     "(argument_utils.py:314)"},
    {kMegatronLm, kModel, [](M m, P) { return !has_megatron_attention(m); },
     "attention with chunks, score caps, a custom scale or this norm of q and k",
     "its attention has neither chunks nor caps (attention.py:952), and norms q and k per head "
     "(attention.py:1734)"},
    {kMegatronLm, kModel, [](M m, P) { return !has_megatron_biases(m); },
     "biases in some linear layers other than q, k and v",
     "its linear layers all have biases, or only q, k and v, or none"},
    {kMegatronLm, kModel, [](M m, P) { return !has_megatron_router(m); },
     "this kind of router or experts",
     "its arguments cannot express scaled expert inputs, sigmoid weights without normalization, a "
     "router bias alone, or latent experts outside hybrid models"},
    {kMegatronLm, kModel, [](M m, P) { return !has_plain_ends(m); },
     "scaled embeddings, scaled or capped logits, or a bias in the head",
     "its arguments do not support them"},

    // BigScience's megatron/arguments.py, deepspeed/runtime/config.py and runtime/pipe/engine.py.
    // Microsoft's fork has these features (4efb479d, megatron/arguments.py:623, 647, 680 and 937).
    {kMegatronDeepSpeed, kModel, [](M m, P) { return has_experts(m); }, "experts",
     "its pretrain_gpt.py trains dense models"},
    {kMegatronDeepSpeed, kModel, [](M m, P) { return m.attention.kv_heads != m.attention.heads; },
     "grouped-query attention", "BigScience's fork has as many key/value heads as query heads: for Microsoft's use "
     "--stack megatron-deepspeed-2023"},
    {kMegatronDeepSpeed, kModel, [](M m, P) { return m.norm != NormKind::kLayerNorm; }, "RMSNorm",
     "BigScience's fork has LayerNorm only: for Microsoft's use --stack megatron-deepspeed-2023"},
    {kMegatronDeepSpeed, kModel, [](M m, P) { return !m.linear_bias; }, "linear layers without bias",
     "BigScience's fork always has one: for Microsoft's use --stack megatron-deepspeed-2023"},
    {kMegatronDeepSpeed, kModel, [](M m, P) { return !m.tied_embedding; }, "untied word embeddings",
     "BigScience's fork ties them: for Microsoft's use --stack megatron-deepspeed-2023"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.schedule != ScheduleKind::kOneFOneB; },
     "a schedule other than 1f1b", "DeepSpeed's pipeline engine runs 1f1b"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.precision != Precision::kNone; },
     "a precision recipe", "its GEMMs are in 16 or 32 bits"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.degrees.cp > 1; }, "context parallelism",
     "it does not implement context parallelism"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.sequence_parallel; }, "sequence parallelism",
     "it does not implement sequence parallelism"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.recompute == Recompute::kSelective; },
     "selective recompute", "it recomputes whole blocks"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.recompute == Recompute::kBlocks; },
     "recompute of some blocks", "--checkpoint-activations applies to all blocks"},
    {kMegatronDeepSpeed, kPlan,
     [](M, P p) {
       return p.offload != Offload::kNone && (p.zero != 1 || p.dtype != DType::kFloat16);
     },
     "an offloaded optimizer with these settings",
     "its bf16 optimizer stays on the GPU: use fp16 and ZeRO 1"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.attention == AttentionKind::kFlash; },
     "flash attention", "it has a fused scale-mask-softmax kernel, but no flash attention"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.rank_order != RankOrder::kTpDpPp; },
     "ranks in the order tp-pp-dp",
     "DeepSpeed's rank order is pipe, data, model, which is tp-dp-pp"},
    {kMegatronDeepSpeed, kPlan,
     [](M, P p) {
       const bool half = p.dtype == DType::kFloat16;
       return p.gradient_dtype != (half ? DType::kFloat16 : DType::kFloat32);
     },
     "gradients of this dtype", "its gradients accumulate in fp32 for bf16 and in fp16 for fp16"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.zero >= 2; }, "ZeRO 2 and 3",
     "it always uses DeepSpeed's pipeline engine, which rejects ZeRO 2 and 3"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.zero == 0 && p.dtype == DType::kBFloat16; },
     "ZeRO 0 in bf16", "its bf16 optimizer always shards its state, as ZeRO 1 does"},
    {kMegatronDeepSpeed, kPlan, [](M, P p) { return p.zero > 0 && p.dtype == DType::kFloat32; },
     "ZeRO in fp32", "its ZeRO needs bf16 or fp16"},
    {kMegatronDeepSpeed, kStages,
     [](M m, P p) { return !is_equal_cut(m, p); },
     "this split into stages",
     "it splits the blocks, or the blocks plus embedding and head, equally over the stages"},

    // megatron/training/arguments.py, validate_args; megatron/core/parallel_state.py and
    // transformer/transformer_config.py.
    {kMegatron, kModel, [](M m, P) { return m.attention.position == PositionKind::kAlibi; },
     "ALiBi positions", "its attention does not implement ALiBi"},
    {kMegatron, kModel, [](M m, P) { return m.embedding_norm; }, "a norm after the embedding",
     "it has no option for this norm"},
    {kMegatron, kPlan, [](M, P p) { return p.schedule == ScheduleKind::kGpipe; },
     "the gpipe schedule", "its pipelines run 1f1b or interleaved"},
    {kMegatron | kTitan | kNano, kPlan, [](M, P p) { return p.schedule == ScheduleKind::kZbH1; },
     "the zb-h1 schedule",
     "it has no schedule that splits the backward of one stage per rank: use 1f1b"},
    {kNemo, kPlan, [](M, P p) { return p.zero >= 2 && p.rank_order == RankOrder::kTpPpDp; },
     "ranks in the order tp-pp-dp with ZeRO 2 or 3", "its FSDP rejects use_tp_pp_dp_mapping"},
    {kMegatron, kPlan,
     [](M, P p) { return p.offload == Offload::kOptimizer && p.dtype == DType::kFloat32; },
     "an offloaded optimizer in fp32",
     "it offloads the fp32 master weights of 16-bit training: use bf16 or fp16"},
    {kMegatron, kPlan, [](M, P p) { return p.offload == Offload::kOptimizer && p.zero != 1; },
     "an offloaded optimizer with this ZeRO stage",
     "it offloads the distributed optimizer: use ZeRO 1"},
    {kMegatron, kPlan,
     [](M, P p) { return p.degrees.cp > 1 && p.attention == AttentionKind::kUnfused; },
     "unfused attention with context parallelism",
     "its context parallelism runs flash or fused attention: use flash"},
    {kMegatron | kNano, kPlan,
     [](M, P p) { return p.gradient_dtype != p.dtype && p.gradient_dtype != DType::kFloat32; },
     "gradients of this dtype", "its gradients accumulate in fp32 or in the weights' dtype"},
    {kMegatron, kPlan,
     [](M m, P p) {
       return has_experts(m) && (m.linear_bias || m.experts.bias) && expert_tensor_ranks(p) > 1;
     },
     "experts with biases that are split by tensor parallelism",
     "it requires whole experts then (transformer_config.py:2612): use --etp 1"},
    {kMegatron, kPlan,
     [](M m, P p) {
       return has_experts(m) && p.degrees.pp > 1 && p.rank_order == RankOrder::kTpPpDp &&
              expert_data_ranks(p) != p.degrees.dp;
     },
     "expert-data-parallel groups of another size than dp, in the order tp-pp-dp",
     "its pipeline stages must then vary slowest over the ranks: use --rank-order tp-dp-pp"},
    {kMegatron, kStages, [](M m, P p) { return cuts_shared_indices(m, p); },
     "stages that start on a layer without an indexer",
     "its layers use the indices of an earlier layer of their stage: state the split with "
     "--stage-layers"},
});

}  // namespace

std::span<const LaunchRule> megatron_rules() { return kMegatronRules; }

}  // namespace tpsim::launch_rule_tables
