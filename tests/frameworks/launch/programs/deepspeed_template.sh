micro=2
config="ds_mbs${micro}.json"
sed "s/GBSIZE/64/" template.json | sed "s/MBSIZE/${micro}/" | sed "s/STAGE/1/" \
  > ${config}
deepspeed --num_gpus 8 pretrain_gpt.py --deepspeed --deepspeed_config ${config} --zero-stage 1 \
  --no-pipeline-parallel --num-layers 8 --hidden-size 512 --num-attention-heads 8 \
  --seq-length 256 --max-position-embeddings 256 --attention-dropout 0 --hidden-dropout 0 \
  --num-experts 1 --micro-batch-size ${micro} --global-batch-size 64 --vocab-size 1024 --fp16
