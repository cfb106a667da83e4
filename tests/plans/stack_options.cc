#include "tests/plans/stack_options.h"

namespace tpsim::test {

const std::vector<Option>& megatron_options() {
  static const std::vector<Option> options = {
      {"--num-layers", "int"},
      {"--hidden-size", "int"},
      {"--ffn-hidden-size", "int"},
      {"--num-attention-heads", "int"},
      {"--group-query-attention", ""},
      {"--num-query-groups", "int"},
      {"--kv-channels", "int"},
      {"--seq-length", "int"},
      {"--max-position-embeddings", "int"},
      {"--position-embedding-type", "learned_absolute|rope|mrope|relative|none"},
      {"--rotary-base", "int"},
      {"--normalization", "LayerNorm|RMSNorm"},
      {"--norm-epsilon", "float"},
      {"--swiglu", ""},
      {"--disable-bias-linear", ""},
      {"--untie-embeddings-and-output-weights", ""},
      {"--apply-residual-connection-post-layernorm", ""},
      {"--attention-dropout", "float"},
      {"--hidden-dropout", "float"},
      {"--vocab-size", "int"},
      {"--make-vocab-size-divisible-by", "int"},
      {"--tensor-model-parallel-size", "int"},
      {"--pipeline-model-parallel-size", "int"},
      {"--context-parallel-size", "int"},
      {"--cp-comm-type", "p2p|all_gather|a2a|a2a+p2p"},
      {"--pipeline-model-parallel-layout", "*"},
      {"--num-virtual-stages-per-pipeline-rank", "int"},
      {"--use-tp-pp-dp-mapping", ""},
      {"--sequence-parallel", ""},
      {"--micro-batch-size", "int"},
      {"--global-batch-size", "int"},
      {"--use-distributed-optimizer", ""},
      {"--overlap-grad-reduce", ""},
      {"--overlap-param-gather", ""},
      {"--use-megatron-fsdp", ""},
      {"--data-parallel-sharding-strategy", "no_shard|optim|optim_grads|optim_grads_params"},
      {"--ckpt-format", "torch|torch_dist|zarr|torch_dcp|fsdp_dtensor"},
      {"--bf16", ""},
      {"--fp16", ""},
      {"--accumulate-allreduce-grads-in-fp32", ""},
      {"--grad-reduce-in-bf16", ""},
      {"--recompute-granularity", "full|selective"},
      {"--recompute-method", "uniform|block"},
      {"--recompute-num-layers", "int"},
      {"--attention-backend", "flash|fused|unfused|local|auto"}};
  return options;
}

const std::vector<Option>& deepspeed_options() {
  static const std::vector<Option> options = {
      {"--num-layers", "int"},
      {"--hidden-size", "int"},
      {"--ffn-hidden-size", "int"},
      {"--num-attention-heads", "int"},
      {"--kv-channels", "int"},
      {"--seq-length", "int"},
      {"--max-position-embeddings", "int"},
      {"--position-embedding-type", "rotary|absolute|alibi"},
      {"--glu-activation", "geglu|liglu|reglu|swiglu"},
      {"--no-bias-gelu-fusion", ""},
      {"--embed-layernorm", ""},
      {"--apply-residual-connection-post-layernorm", ""},
      {"--layernorm-epsilon", "float"},
      {"--attention-dropout", "float"},
      {"--hidden-dropout", "float"},
      {"--pad-vocab-size-to", "int"},
      {"--tensor-model-parallel-size", "int"},
      {"--pipeline-model-parallel-size", "int"},
      {"--pp-partition-method", "*"},
      {"--micro-batch-size", "int"},
      {"--global-batch-size", "int"},
      {"--bf16", ""},
      {"--fp16", ""},
      {"--checkpoint-activations", ""},
      {"--deepspeed-activation-checkpointing", ""},
      {"--deepspeed", ""},
      {"--deepspeed_config", "*"},
      {"--zero-stage", "int"}};
  return options;
}

// Keys of the configuration classes, "section.key".
const std::vector<Option>& nemo_keys() {
  static const std::vector<Option> keys = {
      {"model.num_layers", "int"},
      {"model.hidden_size", "int"},
      {"model.ffn_hidden_size", "int"},
      {"model.num_attention_heads", "int"},
      {"model.num_query_groups", "int"},
      {"model.kv_channels", "int"},
      {"model.seq_length", "int"},
      {"model.attention_dropout", "float"},
      {"model.hidden_dropout", "float"},
      {"model.vocab_size", "int"},
      {"model.make_vocab_size_divisible_by", "int"},
      {"model.tensor_model_parallel_size", "int"},
      {"model.pipeline_model_parallel_size", "int"},
      {"model.context_parallel_size", "int"},
      {"model.cp_comm_type", "p2p|all_gather|a2a|a2a+p2p"},
      {"model.virtual_pipeline_model_parallel_size", "int"},
      {"model.pipeline_model_parallel_layout", "*"},
      {"model.sequence_parallel", "true|false"},
      {"model.bf16", "true|false"},
      {"model.fp16", "true|false"},
      {"model.recompute_granularity", "full|selective"},
      {"model.recompute_method", "uniform|block"},
      {"model.recompute_num_layers", "int"},
      {"model.attention_backend", "flash|fused|unfused|local|auto"},
      {"train.micro_batch_size", "int"},
      {"train.global_batch_size", "int"},
      {"ddp.use_distributed_optimizer", "true|false"},
      {"ddp.use_megatron_fsdp", "true|false"},
      {"dist.use_megatron_fsdp", "true|false"},
      {"ddp.overlap_grad_reduce", "true|false"},
      {"ddp.overlap_param_gather", "true|false"},
      {"ddp.data_parallel_sharding_strategy", "no_shard|optim|optim_grads|optim_grads_params"},
      {"ddp.grad_reduce_in_fp32", "true|false"},
      {"checkpoint.ckpt_format", "torch_dist|fsdp_dtensor"},
      {"dist.use_tp_pp_dp_mapping", "true|false"}};
  return keys;
}

const std::vector<Option>& titan_options() {
  static const std::vector<Option> options = {
      {"--training.seq_len", "int"},
      {"--training.local_batch_size", "int"},
      {"--training.global_batch_size", "int"},
      {"--training.mixed_precision_param", "bfloat16|float32"},
      {"--training.mixed_precision_reduce", "float32"},
      {"--parallelism.data_parallel_replicate_degree", "int"},
      {"--parallelism.data_parallel_shard_degree", "int"},
      {"--parallelism.fsdp_reshard_after_forward", "default|always|never"},
      {"--parallelism.tensor_parallel_degree", "int"},
      {"--parallelism.enable-sequence-parallel", ""},
      {"--parallelism.no-enable-sequence-parallel", ""},
      {"--parallelism.context_parallel_degree", "int"},
      {"--parallelism.pipeline_parallel_degree", "int"},
      {"--parallelism.pipeline_parallel_schedule", "1F1B|GPipe|Interleaved1F1B"},
      {"--parallelism.pipeline_parallel_layers_per_stage", "int"},
      {"--parallelism.pipeline_parallel_first_stage_less_layers", "int"},
      {"--parallelism.pipeline_parallel_last_stage_less_layers", "int"},
      {"--parallelism.pipeline_parallel_microbatch_size", "int"},
      {"--activation_checkpoint.mode", "selective|full|memory_budget|none"}};
  return options;
}

}  // namespace tpsim::test
