#!/bin/bash
# Llama's layers under DeepSpeed's engine, without its pipeline.
NUM_GPUS_PER_NODE=8
NODES=4
STAGE=2
MBS=4
CONFIG=$(realpath ds_config.json)
cat > ds.json <<-END
	{
	  "train_batch_size": 512,
	  "train_micro_batch_size_per_gpu": $MBS,
	  "zero_optimization": {"stage": $STAGE, "overlap_comm": true},
	  "bf16": {"enabled": true}
	}
END
options="--tensor-model-parallel-size 1 --no-pipeline-parallel"
options="${options} \
  --num-layers 40 --hidden-size 5120 --ffn-hidden-size 13824 --num-attention-heads 40 \
  --num-key-value-heads 40 --seq-length 4096 --max-position-embeddings 4096 \
  --micro-batch-size ${MBS} --global-batch-size 512 \
  --normalization rmsnorm --swiglu --disable-bias-linear \
  --use-rotary-position-embeddings --untie-embeddings-and-output-weights \
  --attention-dropout 0 --hidden-dropout 0 --layernorm-epsilon 1e-5 \
  --use-flash-attn-v2 --bf16 --no-query-key-layer-scaling \
  --tokenizer-type GPTSentencePieceTokenizer --lr 3e-4 \
  --checkpoint-activations --deepspeed-activation-checkpointing \
  --deepspeed --deepspeed_config=ds.json --zero-stage=$STAGE"
run_cmd="deepspeed --num_nodes $NODES --num_gpus ${NUM_GPUS_PER_NODE} pretrain_gpt.py ${options} $@"
echo ${run_cmd}
eval ${run_cmd}
