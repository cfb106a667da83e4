#!/bin/bash
# A mixture of experts on nodes that a scheduler names.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"

GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"2"}
MASTER=${MASTER_ADDR:-"localhost"}:${MASTER_PORT:-"6000"}
RANKS=$(($GPUS_PER_NODE*$NNODES))
TOKENIZER=${2:-"$HOME/tokenizers/words.model"}
SAVE_TO=$1
mkdir -p "$(dirname "$SAVE_TO")" || exit 1

LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --node_rank ${NODE_RANK:-0}
    --rdzv_endpoint $MASTER
)
SHAPE=(
    --use-mcore-models
    --disable-bias-linear
    --seq-length 4096
    --max-position-embeddings 32768      # more than a sequence
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --init-method-std 0.01
    --attention-dropout 0.0 --hidden-dropout 0.0
    --normalization RMSNorm
    --position-embedding-type rope
    --rotary-base 1000000 --rotary-percent 1.0
    --swiglu
    --untie-embeddings-and-output-weights
    --no-masked-softmax-fusion
    --no-position-embedding
)
EXPERTS=(
    --num-experts 8
    --moe-router-topk 2
    --moe-router-load-balancing-type aux_loss
    --moe-aux-loss-coeff 1e-2
#   --moe-expert-capacity-factor 1.0
    --moe-grouped-gemm
    --moe-permute-fusion
    --moe-router-fusion
    --moe-router-dtype fp32
    --moe-token-dispatcher-type alltoall
)
DATA=(
    --tokenizer-type Llama2Tokenizer
    --tokenizer-model ${TOKENIZER}
    --mock-data
    --split 99990,8,2
)
TRAIN=(
    --micro-batch-size 1
    --global-batch-size 256
    --lr 1e-4 --min-lr 1.0e-5 --lr-warmup-iters 500
    --train-iters 500000
    --bf16
    --use-flash-attn
    --cross-entropy-loss-fusion --cross-entropy-fusion-impl te
    --transformer-impl transformer_engine
    --enable-experimental
    --auto-detect-ckpt-format --no-ckpt-fully-parallel-save --dist-ckpt-strictness log_all
)
LAYOUT=(
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 4
    --num-layers-per-virtual-pipeline-stage 2
    --expert-model-parallel-size 4
    --use-distributed-optimizer
    --sequence-parallel
    --overlap-grad-reduce --overlap-param-gather
    --no-rope-fusion
)
EXTRA=()
if [ -n "${WANDB_API_KEY}" ]; then
    EXTRA+=(--wandb-project ${WANDB_PROJECT:-"experts"})
fi

torchrun ${LAUNCH[@]} pretrain_gpt.py \
    ${SHAPE[@]} ${EXPERTS[@]} ${DATA[@]} \
    ${TRAIN[@]} \
    "${LAYOUT[@]}" ${EXTRA[@]} --save $SAVE_TO
