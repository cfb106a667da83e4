n=4
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 \
  data.max_prompt_length=1024 data.max_response_length=3072 \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=$n \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  trainer.n_gpus_per_node=8 trainer.nnodes=2 trainer.logger='["console"]' $@
