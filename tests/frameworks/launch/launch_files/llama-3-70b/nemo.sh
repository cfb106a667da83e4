# shellcheck shell=bash disable=SC2034
export CUDA_DEVICE_MAX_CONNECTIONS=1
NUM_NODES=32
GPUS_PER_NODE=8
TRAIN_ARGS=(
  --config-file nemo.yaml
)
