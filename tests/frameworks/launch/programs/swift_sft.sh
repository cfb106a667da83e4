# all weights of a small model, over ZeRO 3
NPROC_PER_NODE=4 \
swift sft --model Qwen/Qwen2.5-7B --tuner_type full --torch_dtype bfloat16 --dataset 'words#500' \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_length 4096 \
  --attn_impl flash_attn --deepspeed zero3 --learning_rate 1e-5 --save_steps 50
