# A script that changes a recipe of NeMo's and runs it.
import nemo_run as run

from nemo.collections import llm
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_with_fp8_mixed


def executor(devices: int = 8) -> run.LocalExecutor:
    env_vars = {"TORCH_NCCL_AVOID_RECORD_STREAMS": "1"}
    return run.LocalExecutor(ntasks_per_node=devices, launcher="torchrun", env_vars=env_vars)


def run_pretraining():
    recipe = llm.llama3_70b.pretrain_recipe(
        dir="/checkpoints/llama3",  # where checkpoints go
        name="llama3_pretraining",
        num_nodes=4,
        num_gpus_per_node=8,
    )
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 4
    recipe.trainer.strategy.context_parallel_size = 1
    recipe.trainer.strategy.virtual_pipeline_model_parallel_size = None
    recipe.data.global_batch_size = 128
    recipe.data.micro_batch_size = 1
    recipe.trainer.plugins = bf16_with_fp8_mixed()
    run.run(recipe, executor=executor(devices=recipe.trainer.devices), name="llama3_70b_pretraining")


if __name__ == "__main__":
    run_pretraining()
