# shellcheck shell=bash disable=SC2034
# tpsim model: bloom-176b, 176.2 B parameters, shape 3e0e7e08d1c1456e
export CUDA_DEVICE_MAX_CONNECTIONS=1
NUM_NODES=48
GPUS_PER_NODE=8
TRAIN_ARGS=(
  --num-layers 70
  --hidden-size 14336
  --ffn-hidden-size 57344
  --num-attention-heads 112
  --kv-channels 128
  --seq-length 2048
  --max-position-embeddings 2048
  --position-embedding-type alibi
  --embed-layernorm
  --layernorm-epsilon 1e-05
  --attention-dropout 0
  --hidden-dropout 0
  --pad-vocab-size-to 250880
  --tensor-model-parallel-size 4
  --pipeline-model-parallel-size 12
  --pp-partition-method 'type:transformer|embedding'
  --micro-batch-size 2
  --global-batch-size 2048
  --bf16
  --checkpoint-activations
  --deepspeed-activation-checkpointing
  --deepspeed
  --deepspeed_config ds_config.json
  --zero-stage 0
)
