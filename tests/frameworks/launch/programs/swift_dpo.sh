CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B \
  --train_type full --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \
  --max_length 2048 --deepspeed zero2_offload --dataset pairs
