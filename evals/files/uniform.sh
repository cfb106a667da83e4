#!/bin/bash
# Llama 3 70B on 16 nodes of 8 GPUs, with the parallel sizes of github.com/NVIDIA/Megatron-LM/issues/1031.
torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py \
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
    --group-query-attention --num-query-groups 8 --seq-length 4096 --max-position-embeddings 8192 \
    --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear \
    --untie-embeddings-and-output-weights --vocab-size 128256 --micro-batch-size 1 --global-batch-size 128 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 5 --bf16 --use-flash-attn --lr 1.5e-4 --train-iters 100
