torchrun --nproc_per_node=4 --master_port=20001 train/train_mem.py \
    --model_name_or_path somebody/Llama-2-7b-hf \
    --bf16 True --per_device_train_batch_size 2 --per_device_eval_batch_size 2 \
    --gradient_accumulation_steps 16 --evaluation_strategy "no" \
    --fsdp "full_shard auto_wrap" --fsdp_transformer_layer_cls_to_wrap 'LlamaDecoderLayer' \
    --model_max_length 2048 --gradient_checkpointing True --lazy_preprocess True
