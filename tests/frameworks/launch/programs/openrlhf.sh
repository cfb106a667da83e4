read -r -d '' commands <<END
openrlhf.cli.train_sft \
   --data.max_len 2048 --train.batch_size 64 \
   --train.micro_batch_size 2 \
   --model.model_name_or_path meta-llama/Meta-Llama-3-8B \
   --ds.zero_stage 2 --ds.param_dtype bf16 --ds.packing_samples \
   --model.gradient_checkpointing_enable
END
if [[ ${1} != "slurm" ]]; then
  deepspeed --module $commands
fi
