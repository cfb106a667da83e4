NNODES=2 NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --dataset words --packing true \
  --tensor_model_parallel_size 4 --sequence_parallel true --micro_batch_size 1 \
  --global_batch_size 32 --recompute_granularity selective --max_length 8192 --lr 1e-5 \
  --attention_backend flash --cross_entropy_loss_fusion true
