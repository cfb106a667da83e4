# shellcheck shell=bash disable=SC2034
# tpsim model: llama-3-70b, 70.55 B parameters, shape 8326b9f8cf34e959
export CUDA_DEVICE_MAX_CONNECTIONS=1
NUM_NODES=32
GPUS_PER_NODE=8
TRAIN_ARGS=(
  --num-layers 80
  --hidden-size 8192
  --ffn-hidden-size 28672
  --num-attention-heads 64
  --group-query-attention
  --num-query-groups 8
  --kv-channels 128
  --seq-length 8192
  --max-position-embeddings 8192
  --position-embedding-type rope
  --rotary-base 500000
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --swiglu
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --attention-dropout 0
  --hidden-dropout 0
  --vocab-size 128256
  --make-vocab-size-divisible-by 128
  --tensor-model-parallel-size 8
  --pipeline-model-parallel-size 4
  --context-parallel-size 1
  --num-virtual-stages-per-pipeline-rank 5
  --sequence-parallel
  --micro-batch-size 1
  --global-batch-size 512
  --use-distributed-optimizer
  --bf16
  --accumulate-allreduce-grads-in-fp32
  --attention-backend auto
  --cross-entropy-loss-fusion
  --cross-entropy-fusion-impl native
)
