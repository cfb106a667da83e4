#! /bin/bash
# Texts in place of arrays, a choice by size, and a command kept in a variable.
SIZE=${SIZE:-7}
case $SIZE in
  7)  LAYERS=32; WIDTH=4096; HEADS=32; FFN=11008 ;;
  13) LAYERS=40; WIDTH=5120; HEADS=40; FFN=13824 ;;
  *)  echo "no such size: $SIZE"; exit 1 ;;
esac
TP=2
PP=4
DP=2
WORLD_SIZE=$((TP*PP*DP))
PRECISION="bf16"
NO_SHARDS=

if [[ $PRECISION == "fp8" ]] || [[ $TP -gt 8 ]]; then
    PRECISION_ARGS="--fp8-format hybrid"
elif [ "$PRECISION" = "bf16" ]; then
    PRECISION_ARGS="--bf16"
else
    PRECISION_ARGS="--fp16 --loss-scale 1024"
fi

function launch() {
    local nodes=$1; shift
    torchrun --nnodes=$nodes --nproc-per-node=8 \
        pretrain_gpt.py $OPTIONS $@
}

OPTIONS=" \
    --tensor-model-parallel-size $TP \
    --pipeline-model-parallel-size $PP \
    --num-layers $LAYERS --hidden-size $WIDTH \
    --ffn-hidden-size $FFN \
    --num-attention-heads $HEADS \
    --seq-length 4096 --max-position-embeddings 4096 \
    --micro-batch-size 2 --global-batch-size 64 \
    --swiglu --normalization RMSNorm --norm-epsilon 1e-5 \
    --position-embedding-type rope --disable-bias-linear \
    --untie-embeddings-and-output-weights \
    --attention-dropout=0 --hidden-dropout=0 \
    --vocab-size 32000 \
    --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7 \
    --recompute-activations \
    --sequence-parallel \
    --data-path 0.3 first/text_document 0.7 second/text_document \
    $PRECISION_ARGS"
[ -z "$NO_SHARDS" ] && OPTIONS="$OPTIONS --use-distributed-optimizer"

for run in 1 2 3; do
    launch 2
done
