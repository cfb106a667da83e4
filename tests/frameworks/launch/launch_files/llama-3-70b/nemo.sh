# shellcheck shell=bash disable=SC2034
# tpsim model: llama-3-70b, 70.55 B parameters, shape 8326b9f8cf34e959
export CUDA_DEVICE_MAX_CONNECTIONS=1
NUM_NODES=32
GPUS_PER_NODE=8
TRAIN_ARGS=(
  --config-file nemo.yaml
)
