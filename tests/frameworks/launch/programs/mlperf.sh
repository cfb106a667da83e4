source $(dirname ${BASH_SOURCE[0]})/mlperf_common.sh
export MINIBS=64
export TENSOR_MODEL_PARALLEL=8
export PIPELINE_MODEL_PARALLEL=8
export INTERLEAVED_PIPELINE=8
export CONTEXT_PARALLEL=2
export DGXNNODES=64
export MICRO_BATCH_SIZE=1
export MODEL_SIZE="405b"
export ASYM_PP_EMBED=True
export ASYM_PP_LOSS=True
export DGXSYSTEM=$(basename $(readlink -f ${BASH_SOURCE[0]}) | sed 's/^config_//')
