swift sft --model Qwen/Qwen2.5-7B --dataset words --lora_rank 8 --lora_alpha 32 --max_length 2048
