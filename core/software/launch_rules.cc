#include "core/software/launch_rules.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "core/software/launched_models.h"

namespace tpsim {
namespace {

constexpr std::uint8_t launcher_bit(Launcher launcher) {
  return static_cast<std::uint8_t>(1 << static_cast<int>(launcher));
}
constexpr std::uint8_t kDeepSpeed = launcher_bit(Launcher::kMegatronDeepSpeed);
constexpr std::uint8_t kNemo = launcher_bit(Launcher::kNemo);
constexpr std::uint8_t kMegatron = launcher_bit(Launcher::kMegatron) | kNemo;
constexpr std::uint8_t kTitan = launcher_bit(Launcher::kTorchTitan);
constexpr std::uint8_t kMegatronLm = launcher_bit(Launcher::kMegatron);
constexpr std::uint8_t kNano = launcher_bit(Launcher::kNanotron);
constexpr std::uint8_t kAccel = launcher_bit(Launcher::kAccelerate);
constexpr std::uint8_t kOthers = kDeepSpeed | kNano;

using M = const ModelSpec&;
using P = const Plan&;

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

// Whether torchtitan would train a bf16 plan in fp32. Without sharding, it uses autocast only if
// data parallelism is the only parallelism; with tp or pp, nothing casts to bf16.
bool casts_nothing(const Plan& plan) {
  const bool shards = plan.zero >= 2 && data_ranks(plan) > 1;
  return plan.dtype == DType::kBFloat16 && !shards && plan.degrees.tp * plan.degrees.pp > 1;
}

// Whether experts are whole under expert parallelism, and otherwise split over the tensor ranks.
bool cuts_experts_as_titan(const Plan& plan) {
  return expert_tensor_ranks(plan) == (plan.degrees.ep > 1 ? 1 : plan.degrees.tp);
}

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

constexpr auto kFiles = RuleScope::kFiles;
constexpr auto kModel = RuleScope::kModel;
constexpr auto kPlan = RuleScope::kPlan;
constexpr auto kStages = RuleScope::kStages;

// Rules with scope kFiles come first: without them, the written files would train another model.
const std::array kRules = std::to_array<LaunchRule>({
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
    {kNemo, kFiles, [](M m, P) { return !has_bridge(m) && !has_bridge_options(m); },
     "models of this family",
     "Megatron-Bridge has no bridge for the family (models/*/*_bridge.py), and its GPTModelProvider "
     "cannot express the layers"},
    {kMegatron, kFiles, [](M m, P p) { return cuts_shared_indices(m, p); },
     "stages that start on a layer without an indexer",
     "its layers use the indices of an earlier layer of their stage: state the split with "
     "--stage-layers"},
    // Models that Megatron-LM's arguments cannot express.
    {kMegatronLm, kFiles, [](M m, P) { return !has_megatron_parts(m); },
     "per-layer tables, several residual streams or special ops in layers",
     "its attention variants are gdn, gdn2 and dsa (transformer_config.py:301)"},
    {kMegatronLm, kFiles,
     [](M m, P) { return !has_megatron_layers(m) && !is_heterogeneous(m); },
     "layers that differ in more than experts, window or mixer",
     "its arguments set one shape for all experts, all windows, all mixers of a kind, and norms of q "
     "and k (gpt_layer_specs.py:328); its JSON covers LLaMA 3's layers (arguments.py:212)"},
    {kMegatronLm, kFiles, [](M m, P) { return m.norm_place != NormPlace::kBefore; },
     "norms that are not before each branch",
     "its layers have one norm before each branch (transformer_layer.py:278)"},
    {kMegatronLm, kFiles, [](M m, P) { return !has_megatron_activation(m); },
     "this activation",
     "its arguments support GELU, SwiGLU, squared ReLU and a clamped SwiGLU only "
     "(argument_utils.py:314)"},
    {kMegatronLm, kFiles, [](M m, P) { return !has_megatron_attention(m); },
     "attention with chunks, score caps, a custom scale or this norm of q and k",
     "its attention has neither chunks nor caps (attention.py:952), and norms q and k per head "
     "(attention.py:1734)"},
    {kMegatronLm, kFiles, [](M m, P) { return !has_megatron_biases(m); },
     "biases in some linear layers other than q, k and v",
     "its linear layers all have biases, or only q, k and v, or none"},
    {kMegatronLm, kFiles, [](M m, P) { return !has_megatron_router(m); },
     "this kind of router or experts",
     "its arguments cannot express scaled expert inputs, sigmoid weights without normalization, a "
     "router bias alone, or latent experts outside hybrid models"},
    {kMegatronLm, kFiles, [](M m, P) { return !has_plain_ends(m); },
     "scaled embeddings, scaled or capped logits, or a bias in the head",
     "its arguments do not support them"},

    // BigScience's megatron/arguments.py, deepspeed/runtime/config.py and runtime/pipe/engine.py.
    {kDeepSpeed, kModel, [](M m, P) { return has_experts(m); }, "experts",
     "its pretrain_gpt.py trains dense models"},
    {kDeepSpeed, kModel, [](M m, P) { return m.attention.kv_heads != m.attention.heads; },
     "grouped-query attention", "its attention has as many key/value heads as query heads"},
    {kDeepSpeed, kModel, [](M m, P) { return m.norm != NormKind::kLayerNorm; }, "RMSNorm",
     "it has LayerNorm only"},
    {kDeepSpeed, kModel, [](M m, P) { return !m.linear_bias; }, "linear layers without bias",
     "its linear layers always have a bias"},
    {kDeepSpeed, kModel, [](M m, P) { return !m.tied_embedding; }, "untied word embeddings",
     "embedding and head share one tied layer"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.schedule != ScheduleKind::kOneFOneB; },
     "a schedule other than 1f1b", "DeepSpeed's pipeline engine runs 1f1b"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.precision != Precision::kNone; },
     "a precision recipe", "its GEMMs are in 16 or 32 bits"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.degrees.cp > 1; }, "context parallelism",
     "it does not implement context parallelism"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.sequence_parallel; }, "sequence parallelism",
     "it does not implement sequence parallelism"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.recompute == Recompute::kSelective; },
     "selective recompute", "it recomputes whole blocks"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.recompute == Recompute::kBlocks; },
     "recompute of some blocks", "--checkpoint-activations applies to all blocks"},
    {kDeepSpeed, kPlan,
     [](M, P p) {
       return p.offload != Offload::kNone && (p.zero != 1 || p.dtype != DType::kFloat16);
     },
     "an offloaded optimizer with these settings",
     "its bf16 optimizer stays on the GPU: use fp16 and ZeRO 1"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.attention == AttentionKind::kFlash; },
     "flash attention", "it has a fused scale-mask-softmax kernel, but no flash attention"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.rank_order != RankOrder::kTpDpPp; },
     "ranks in the order tp-pp-dp",
     "DeepSpeed's rank order is pipe, data, model, which is tp-dp-pp"},
    {kDeepSpeed, kPlan,
     [](M, P p) {
       const bool half = p.dtype == DType::kFloat16;
       return p.gradient_dtype != (half ? DType::kFloat16 : DType::kFloat32);
     },
     "gradients of this dtype", "its gradients accumulate in fp32 for bf16 and in fp16 for fp16"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.zero >= 2; }, "ZeRO 2 and 3",
     "it always uses DeepSpeed's pipeline engine, which rejects ZeRO 2 and 3"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.zero == 0 && p.dtype == DType::kBFloat16; },
     "ZeRO 0 in bf16", "its bf16 optimizer always shards its state, as ZeRO 1 does"},
    {kDeepSpeed, kPlan, [](M, P p) { return p.zero > 0 && p.dtype == DType::kFloat32; },
     "ZeRO in fp32", "its ZeRO needs bf16 or fp16"},
    {kDeepSpeed, kStages,
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
    {kMegatron, kPlan, [](M, P p) { return p.zero >= 2 && p.degrees.pp > 1; },
     "ZeRO 2 or 3 with a pipeline",
     "tpsim can export its FSDP settings without pipelines only: use ZeRO 0 or 1"},
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
       return has_experts(m) && p.degrees.pp > 1 && p.rank_order == RankOrder::kTpPpDp &&
              expert_data_ranks(p) != p.degrees.dp;
     },
     "expert-data-parallel groups of another size than dp, in the order tp-pp-dp",
     "its pipeline stages must then vary slowest over the ranks: use --rank-order tp-dp-pp"},

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
    {kTitan, kFiles, [](M m, P) { return m.family == "llama4_text"; }, "Llama 4",
     "torchtitan trained it until June 2026 (models/llama4 before d92336fee)"},
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
       return matches_any(m.family, "gpt_oss kimi_k2 qwen3_5*") && p.degrees.cp > 1;
     },
     "context parallelism of this family",
     "refused in models/common/decoder.py:181 and parallelize.py of kimi_k2_7 and qwen3_5: use cp 1"},
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
    {kTitan, kPlan, [](M, P p) { return p.offload != Offload::kNone; }, "an offloaded optimizer",
     "its CPU offload also moves weights and gradients"},
    {kTitan, kPlan, [](M, P p) { return p.attention != AttentionKind::kFlash; },
     "unfused attention", "it uses PyTorch's fused attention: use flash"},
    {kTitan, kPlan, [](M, P p) { return casts_nothing(p); },
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
    {kNano, kModel, [](M m, P) { return has_experts(m); }, "experts",
     "tpsim cannot export MoE models to nanotron yet: use megatron-lm"},
    {kNano, kModel, [](M m, P) { return !has_llama_blocks(m); }, "this architecture",
     "its models are LLaMA models: rotary positions, RMSNorm, SwiGLU, no biases"},
    {kNano, kModel,
     [](M m, P) { return m.attention.heads * m.attention.head_dim != m.hidden; },
     "heads of this width", "its head_dim is always hidden / heads"},
    {kNano, kModel, [](M m, P) { return m.attention_dropout > 0 || m.hidden_dropout > 0; },
     "dropout", "its models do not implement dropout"},
    {kNano | kAccel, kPlan, [](M, P p) { return p.degrees.cp > 1; }, "context parallelism",
     "tpsim cannot export context parallelism to this program yet"},
    {kNano | kAccel, kPlan, [](M, P p) { return p.precision != Precision::kNone; },
     "a precision recipe", "its GEMMs are in 16 or 32 bits"},
    {kNano | kAccel, kPlan, [](M, P p) { return p.offload != Offload::kNone; },
     "an offloaded optimizer", "tpsim cannot export optimizer offload to this program yet"},
    {kNano | kAccel, kPlan, [](M, P p) { return p.rank_order != RankOrder::kTpDpPp; },
     "ranks in the order tp-pp-dp", "its mesh order is pipeline, data, tensor, which is tp-dp-pp"},
    {kNano | kAccel, kPlan,
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
    {kAccel, kPlan, [](M, P p) { return p.schedule != ScheduleKind::kOneFOneB; },
     "a schedule other than 1f1b", "it has no pipelines: use 1f1b"},
    {kAccel, kPlan,
     [](M, P p) {
       const bool half = p.dtype == DType::kFloat16;
       return p.gradient_dtype != (half ? DType::kFloat16 : DType::kFloat32);
     },
     "gradients of this dtype", "its gradients accumulate in fp32 for bf16 and in fp16 for fp16"},
});

bool is_of(const LaunchRule& rule, Launcher launcher) {
  return (rule.launchers & launcher_bit(launcher)) != 0;
}

}  // namespace

std::vector<const LaunchRule*> rules_of(Launcher launcher, RuleScope scope) {
  std::vector<const LaunchRule*> rules;
  for (const LaunchRule& rule : kRules) {
    if (rule.scope == scope && is_of(rule, launcher)) rules.push_back(&rule);
  }
  return rules;
}

const char* refusal_of(const LaunchRule& rule) {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (const LaunchRule& one : kRules)
      all.push_back("the stack cannot run " + std::string(one.what));
    return all;
  }();
  return texts[static_cast<std::size_t>(&rule - kRules.data())].c_str();
}

const LaunchRule* broken_rule(Launcher launcher, const ModelSpec& model, const Plan& plan) {
  for (const LaunchRule& rule : kRules) {
    if (is_of(rule, launcher) && rule.is_broken(model, plan)) return &rule;
  }
  return nullptr;
}

const LaunchRule* broken_rule(Launcher launcher, RuleScope scope, const ModelSpec& model,
                              const Plan& plan) {
  for (const LaunchRule& rule : kRules) {
    if (rule.scope == scope && is_of(rule, launcher) && rule.is_broken(model, plan)) return &rule;
  }
  return nullptr;
}

}  // namespace tpsim
