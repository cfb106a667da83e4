NUM_NODES=32
GPUS_PER_NODE=8
TRAIN_ARGS=(
  --config-file nemo.yaml
)
