# shellcheck shell=bash disable=SC2034
# tpsim model: llama-3-70b, 70.55 B parameters, shape 8326b9f8cf34e959
NUM_NODES=32
GPUS_PER_NODE=8
TRAIN_ARGS=(
  --training.max_context_length 8192
  --training.num_tokens_per_microbatch_per_dp_rank 8192
  --training.num_tokens_per_train_step 4194304
  --training.mixed_precision_param bfloat16
  --training.mixed_precision_reduce float32
  --parallelism.data_parallel_replicate_degree 1
  --parallelism.data_parallel_shard_degree 8
  --parallelism.fsdp_reshard_after_forward always
  --parallelism.tensor_parallel_degree 8
  --parallelism.enable-sequence-parallel
  --parallelism.context_parallel_degree 1
  --parallelism.pipeline_parallel_degree 4
  --parallelism.pipeline_parallel_schedule Interleaved1F1B
  --parallelism.pipeline_parallel_layers_per_stage 4
  --parallelism.pipeline_parallel_first_stage_less_layers 0
  --parallelism.pipeline_parallel_last_stage_less_layers 0
  --parallelism.num_pp_microbatches 64
  --training.disable_cuda_graphs
  --loss.num_chunks 8
  activation-checkpoint:none
)
