MODEL=$1
BATCH=$2
TP=${3}
if [ $MODEL = small ]; then
  LAYERS=8
elif [ $MODEL = large ]; then
  LAYERS=16
fi
GPUS_PER_NODE=`python -c "import torch; print(torch.cuda.device_count())"`
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes 1 pretrain_gpt.py --num-layers ${LAYERS} \
  --hidden-size 512 --num-attention-heads 8 --seq-length 256 --max-position-embeddings 256 \
  --attention-dropout 0 --hidden-dropout 0 --micro-batch-size ${BATCH} --global-batch-size 64 \
  --tensor-model-parallel-size ${TP} --vocab-size 1024 --bf16
