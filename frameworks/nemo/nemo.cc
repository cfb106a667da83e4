// NeMo Megatron-Bridge: writes and reads YAML that overrides a recipe.

#include <algorithm>

#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/framework_judge.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/outside_settings.h"

namespace tpsim {
namespace {

// Ignored settings, separated by spaces. A name that ends in '*' is a prefix.
constexpr std::string_view kOutside =
    "optimizer.* optim.* scheduler.* dataset.* logger.* log.* resume.* tokenizer* rng.* "
    "validation.* profiling.* trainer.* dir name seed tensor_inspect.* ft.* inprocess_restart.* "
    "env_vars.* train.train_* train.eval_* model.fp8_amax_* model.init_* model.qk_clip* "
    "model.moe_router_load_balancing_* model.rotary_* model.rope_* checkpoint.* "
    "dist.distributed_timeout* ddp.average_in_collective ddp.check_for_* ddp.bucket_size "
    "rerun_state_machine.* straggler.* nvrx_straggler.* model.gradient_as_bucket_view model.ckpt_* "
    "model.save_ckpt_format model.pipeline_dtype model.params_dtype model.autocast_dtype "
    "model.cuda_graph_warmup_steps model.fp8_margin model.fp8_interval train.exit_* "
    "train.manual_gc* checkpoint.save* checkpoint.load* model.moe_aux_loss_coeff "
    "model.moe_z_loss_coeff model.moe_router_dtype model.moe_router_bias_update_rate "
    "model.moe_per_layer_logging model.moe_router_padding_* model.moe_hybridep_num_sms "
    "model.mtp_loss_scaling_factor model.max_position_embeddings "
    "model.share_embeddings_and_output_weights model.calculate_per_token_loss model.hf_model_id "
    "model.hf_model_revision model.ddp model.setup_optimizers model.lazy_init "
    "model.progress_interval model.replace_progress_bar model.megatron_log_level "
    "model.use_te_rng_tracker model.parallel_* model.restore_config* model.autocast_enabled "
    "model.attention_softmax_in_fp32 model.persist_layer_norm model.deallocate_pipeline_outputs "
    "model.tp_only_amax_red model.batch_p2p_comm model.num_layers_at_* model.should_pad_vocab "
    "comm_overlap.tp_comm_overlap_* comm_overlap.tp_comm_bootstrap_backend "
    "comm_overlap.defer_embedding_wgrad_compute comm_overlap.wgrad_deferral_limit "
    "comm_overlap.overlap_param_gather_with_optimizer_step dist.enable_megatron_core_experimental "
    "dist.lazy_init dist.external_gpu_device_mapping model.high_priority_a2a_comm_stream "
    "model.moe_pad_experts_for_cuda_graph_inference model.moe_mlp_glu_interleave_size "
    "model.moe_hybridep_num_sms* model.moe_deepep_num_sms model.moe_flex_dispatcher_num_sms "
    "model.is_hybrid_model model.hybrid_* model.mamba_* model.window_size "
    "model.query_pre_attn_scalar model.mscale* model.tokenizer.* model.num_tokentypes "
    "model.scale_factor model.use_transformer_engine_full_layer_spec model.yarn_* "
    "model.perform_initialization model.softmax_type model.barrier_with_L1_time "
    "model.batch_p2p_sync model.position_embedding_type model.transformer_layer_spec* "
    "model.init_model_with_meta_device ddp.suggested_communication_unit_size model.activation_func "
    "model.gated_linear_unit model.normalization model.layernorm_* "
    "model.moe_permute_fusion_into_hybridep model.mtp_eval_in_bf16 model.csa_compress_rotary_base "
    "model.mtp_hybrid_override_pattern dist.high_priority_stream_groups ddp.num_buckets "
    "model.forward_step_fn model.data_step_fn model.generation_config "
    "comm_overlap.align_param_gather comm_overlap.batch_p2p_comm comm_overlap.bucket_size";

// Returns the model's shape as JSON, with the field names of Megatron-Bridge's model provider.
JsonValue shape_of(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  JsonValue shape = json_object({{"num_layers", model.layers},
                                 {"hidden_size", model.hidden},
                                 {"num_attention_heads", attention.heads},
                                 {"num_query_groups", attention.kv_heads},
                                 {"kv_channels", attention.head_dim},
                                 {"add_bias_linear", has_all_biases(model)}});
  if (has_experts(model)) {
    shape.set("num_moe_experts", model.experts.count);
    shape.set("moe_router_topk", model.experts.per_token);
  }
  if (model.ends.prediction_layers > 0) shape.set("mtp_num_layers", model.ends.prediction_layers);
  return shape;
}

// Whether most settings have names of Megatron-Bridge. Other programs have a section "train" too.
bool has_bridge_names(const std::vector<FlatSetting>& settings) {
  const auto known = std::count_if(settings.begin(), settings.end(), [](const FlatSetting& one) {
    return has_nemo_key(list_of(one.key)) ||
           is_set_aside(LaunchStack::kNemo, {std::string(list_of(one.key)), ""});
  });
  return 2 * known > std::ssize(settings);
}

class Nemo final : public Framework {
 public:
  Nemo() : Framework(LaunchStack::kNemo, Launcher::kNemo, std::string(kNemoYamlFile)) {}

  std::optional<LaunchStack> alternative() const override {
    return LaunchStack::kMegatronLm;  // Megatron-Core too; its files support more models
  }

  bool detects_settings(const std::vector<FlatSetting>& settings) const override {
    return has_key(settings, "model.tensor_model_parallel_size") ||
           (is_of_bridge(settings) && has_bridge_names(settings));
  }
  Result<ImportedPlan> read(const std::vector<LaunchFile>& files,
                            const ImportInputs& inputs) const override {
    return import_nemo(files, inputs);
  }
  Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file,
                                     const ImportInputs& inputs) const override {
    if (!inputs.model && states_model(settings)) {
      return located(file, import_megatron_yaml(settings, inputs));
    }
    return import_plan(stack(), {{std::string(kNemoYamlFile), file.text, path_of(file)}}, inputs);
  }
  // Settings that match an option of Megatron have already been renamed to it.
  bool is_outside(std::string_view option) const override {
    return matches_any(option, kOutside) ||
           (option.starts_with("--") && is_outside_megatron(option));
  }

  // Writes two files. The shell file states the number of GPUs, which the YAML cannot state.
  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec& software) const override {
    TPSIM_TRY(LaunchOptions options, megatron_settings(stack(), file, software));
    add_shard_instances(file.plan, size.domain_gpus, software.parts.shard_group, options);
    TPSIM_TRY(const NemoPrecision precision, nemo_precision(file.plan, options));
    LaunchOptions launcher;
    launcher.add("--config-file", std::string(kNemoYamlFile));
    return std::vector<LaunchFile>{
        shell_file(stack(), file, size, launcher, expert_lines(file, size, software)),
        {files().back(),
         precision.yaml + nemo_yaml(precision.others, nemo_layers(file.model, options.all()))}};
  }
  std::string start_command(const ModelSpec&, const std::string& job) const override {
    return torchrun_command(job, "pretrain.py");
  }

  std::string_view judge() const override { return "megatron-bridge"; }
  Status prepare_check(const std::vector<LaunchFile>& files, const ModelSpec& model,
                       JudgedFiles& judged) const override {
    TPSIM_TRY_STATUS(Framework::prepare_check(files, model, judged));
    JsonValue overrides = json_object({});
    for (const FlatSetting& one : judged.settings) overrides.set(one.key, option_json(one.value));
    judged.given.set("overrides", std::move(overrides));
    judged.given.set("model", shape_of(model));
    judged.options.clear();
    return Ok{};
  }
};

}  // namespace

const Framework& nemo() {
  static const Nemo framework;
  return framework;
}

}  // namespace tpsim
