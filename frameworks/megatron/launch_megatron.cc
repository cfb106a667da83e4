// Writes Megatron-LM's arguments. launch_nemo.cc converts them to Megatron-Bridge's YAML. Source of
// pipeline layouts: Megatron's docs.
#include <fmt/format.h>

#include <algorithm>

#include "core/software/launched_models.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

constexpr const char* kOverlapReduction = "--overlap-grad-reduce";
constexpr const char* kOverlapGather = "--overlap-param-gather";

bool is_even(const Plan& plan) {
  for (const std::int64_t layers : plan.stage_layers) {
    if (layers != plan.stage_layers.front()) return false;
  }
  return true;
}

// Returns the pipeline layout in Megatron's notation, such as "Et*5|t*6|t*5mL". E: embedding, t:
// block, m: multi-token prediction layer, L: loss, |: chunk boundary.
std::string layout_text(const std::vector<std::int64_t>& chunks, std::int64_t predictions) {
  std::string text = "E";
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i > 0) text += "|";
    if (chunks[i] > 0) text += fmt::format("t*{}", chunks[i]);
  }
  return text + std::string(static_cast<std::size_t>(predictions), 'm') + "L";
}

void add_stages(LaunchStack stack, const ModelSpec& model, const Plan& plan, LaunchOptions& out) {
  if (is_hybrid_pattern(model)) {
    out.add(kHybridPattern, hybrid_pattern(model, plan.stage_layers));
    return;
  }
  if (!is_even(plan)) {
    out.add("--pipeline-model-parallel-layout",
            layout_text(plan.stage_layers, model.ends.prediction_layers));
    // Megatron-Bridge checks the overlap of experts before it reads the layout.
    if (stack != LaunchStack::kNemo) return;
  }
  if (plan.virtual_stages > 1) {
    out.add("--num-virtual-stages-per-pipeline-rank", plan.virtual_stages);
  }
}

void add_sharding(const Plan& plan, LaunchOptions& out) {
  if (plan.zero == 1) out.add("--use-distributed-optimizer");
  if (offloads_optimizer(plan)) {  // source: core/optimizer/cpu_offloading/README.md
    out.add("--optimizer-cpu-offload");
    out.add("--optimizer-offload-fraction", "1.0");
    out.add("--use-precision-aware-optimizer");
  }
  if (plan.zero < 2) return;
  out.add("--use-megatron-fsdp");
  out.add("--data-parallel-sharding-strategy",
          plan.zero == 2 ? "optim_grads" : "optim_grads_params");
  out.add("--ckpt-format", "fsdp_dtensor");
}

// Adds the data-parallel overlaps of the software. Overlapping parameter all-gathers requires a
// distributed optimizer and overlapped reductions (training/arguments.py:1024). Recipes of
// Megatron-Bridge switch both on.
void add_overlap(LaunchStack stack, const Plan& plan, const TrainingOptions& training,
                 LaunchOptions& out) {
  if (!has_replicas(plan)) return;
  const bool reduces = training.overlap_gradient_reduction;
  const bool gathers = reduces && plan.zero > 0 && training.overlap_parameter_gather;
  const auto add = [&](const char* option, bool is_on) {
    if (is_on) out.add(option);
    if (!is_on && stack == LaunchStack::kNemo) out.add(option, std::string("false"));
  };
  add(kOverlapReduction, reduces);
  add(kOverlapGather, gathers);
}

void add_precision(const Plan& plan, LaunchOptions& out) {
  if (plan.dtype != DType::kFloat32) out.add(fmt::format("--{}", name_of(plan.dtype)));
  if (plan.dtype == DType::kFloat32) return;
  add_megatron_recipe(plan, out);
  if (plan.gradient_dtype == DType::kFloat32) {
    out.add("--accumulate-allreduce-grads-in-fp32");
  } else if (plan.dtype == DType::kBFloat16) {
    out.add("--grad-reduce-in-bf16");
  }
}

// Method "block" recomputes the first N blocks of every model chunk (docs of
// --recompute-num-layers; core/transformer/transformer_block.py).
void add_recompute(const Plan& plan, LaunchOptions& out) {
  if (plan.recompute == Recompute::kNone) return;
  const bool selective = plan.recompute == Recompute::kSelective;
  out.add("--recompute-granularity", selective ? "selective" : "full");
  if (selective) return;
  const bool some = plan.recompute == Recompute::kBlocks;
  out.add("--recompute-method", some ? "block" : "uniform");
  out.add("--recompute-num-layers", some ? plan.recompute_blocks : 1);
}

void add_plan(LaunchStack stack, const ModelSpec& model, const Plan& plan, LaunchOptions& out) {
  out.add("--tensor-model-parallel-size", plan.degrees.tp);
  out.add("--pipeline-model-parallel-size", plan.degrees.pp);
  out.add("--context-parallel-size", plan.degrees.cp);
  if (has_experts(model)) {
    out.add("--expert-model-parallel-size", plan.degrees.ep);
    out.add("--expert-tensor-parallel-size", expert_tensor_ranks(plan));
  }
  add_stages(stack, model, plan, out);
  if (plan.rank_order == RankOrder::kTpPpDp) out.add("--use-tp-pp-dp-mapping");
  if (plan.sequence_parallel) out.add("--sequence-parallel");
  out.add("--micro-batch-size", plan.micro_batch);
  out.add("--global-batch-size", plan.global_batch);
  add_sharding(plan, out);
  add_precision(plan, out);
  add_recompute(plan, out);
}

// Adds only the sequence and dropout, for models whose layers Megatron's arguments cannot state.
// The NeMo recipe states their layers.
void add_run_choices(const ModelSpec& model, LaunchOptions& out) {
  out.add("--seq-length", model.seq);
  out.add("--attention-dropout", fmt::format("{}", model.attention_dropout));
  out.add("--hidden-dropout", fmt::format("{}", model.hidden_dropout));
}

// Adds the modules that selective recompute recomputes, unless they are Megatron's default, core
// attention.
void add_recomputed_modules(const PlanFile& file, LaunchOptions& out) {
  const auto said = file.parts.find(StackPart::kRecomputeModules);
  const bool others =
      said != file.parts.end() && said->second != bit(RecomputeModule::kCoreAttention);
  if (file.plan.recompute != Recompute::kSelective || !others) return;
  std::string words = text_of(row_of(StackPart::kRecomputeModules), said->second);
  std::replace(words.begin(), words.end(), ',', ' ');
  out.add(kRecomputeModules, words);
}

}  // namespace

void add_megatron_model(const ModelSpec& model, LaunchOptions& out) {
  const AttentionShape& attention = attention_shape(model);
  out.add("--num-layers", model.layers);
  out.add("--hidden-size", model.hidden);
  std::int64_t dense_width = model.ffn_hidden;
  for (const BlockShape& block : model.other_blocks) {
    if (block.experts.count == 0 && block.ffn_hidden > 0) dense_width = block.ffn_hidden;
  }
  out.add("--ffn-hidden-size", dense_width);
  out.add("--num-attention-heads", attention.heads);
  if (attention.kv_heads != attention.heads) {
    out.add("--group-query-attention");
    out.add("--num-query-groups", attention.kv_heads);
  }
  out.add("--kv-channels", attention.head_dim);
  out.add("--seq-length", model.seq);
  out.add("--max-position-embeddings", position_rows(model));
  const bool rotary = attention.position == PositionKind::kRotary;
  const bool has_none = attention.position == PositionKind::kNone;
  out.add("--position-embedding-type", rotary ? "rope" : has_none ? "none" : "learned_absolute");
  if (rotary) out.add("--rotary-base", fmt::format("{}", attention.rope_theta));
  if (states_layers_in_json(model)) out.add("--use-rotary-position-embeddings");
  out.add("--normalization", model.norm == NormKind::kRmsNorm ? "RMSNorm" : "LayerNorm");
  out.add("--norm-epsilon", fmt::format("{}", model.norm_epsilon));
  if (model.mlp == MlpKind::kSwiglu) out.add("--swiglu");
  if (!has_all_biases(model)) out.add("--disable-bias-linear");
  if (!model.tied_embedding) out.add("--untie-embeddings-and-output-weights");
  if (model.residual_from_after_norm) out.add("--apply-residual-connection-post-layernorm");
  out.add("--attention-dropout", fmt::format("{}", model.attention_dropout));
  out.add("--hidden-dropout", fmt::format("{}", model.hidden_dropout));
  out.add("--vocab-size", model.vocab);
  out.add("--make-vocab-size-divisible-by", 128);
  add_megatron_experts(model, out);
  add_rare_shapes(model, out);
}

Result<LaunchOptions> megatron_settings(LaunchStack stack, const PlanFile& file,
                                        const StackSpec& software) {
  TPSIM_TRY_STATUS(check_launch_rules(stack, file, software));
  LaunchOptions options;
  if (stack == LaunchStack::kNemo && !has_bridge_options(file.model)) {
    add_run_choices(file.model, options);
  } else {
    add_megatron_model(file.model, options);
  }
  add_plan(stack, file.model, file.plan, options);
  add_parts(stack, file, options);
  add_mechanisms(stack, file, software, options);
  if (file.plan.degrees.cp > 1) {
    const CpCommType exchange = software.parts.cp_comm_type;
    if (exchange == CpCommType::kTorchRing) {
      return cannot_express(stack, "PyTorch's ring attention",
                            "Megatron's ring attention is --cp-comm-type p2p");
    }
    options.add(kCpCommType, std::string(name_of(exchange)));
  }
  TPSIM_TRY_STATUS(add_megatron_dispatch(file, software, options));
  add_recomputed_modules(file, options);
  add_overlap(stack, file.plan, software.training, options);
  return options;
}

}  // namespace tpsim
