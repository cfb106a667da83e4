# A recipe of NeMo 2: functions that hand configurations on, and another that builds on the first.
from typing import Optional

import lightning.pytorch as pl
import nemo_run as run
import torch
from lightning.pytorch.callbacks.callback import Callback
from megatron.core.distributed import DistributedDataParallelConfig

from nemo import lightning as nl
from nemo.collections.llm.api import finetune, pretrain
from nemo.collections.llm.gpt.data.mock import MockDataModule
from nemo.collections.llm.gpt.model.llama import Llama31Config70B, LlamaModel
from nemo.collections.llm.peft.lora import LoRA
from nemo.collections.llm.recipes.log.default import default_log, default_resume
from nemo.collections.llm.recipes.optim.adam import distributed_fused_adam_with_cosine_annealing
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_mixed
from nemo.collections.llm.recipes.tp_overlap_configs.userbuffers import (
    userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192,
)
from nemo.lightning.pytorch.callbacks.megatron_comm_overlap import MegatronCommOverlapCallback
from nemo.utils.exp_manager import TimingCallback

NAME = "our_70b"


@run.cli.factory(name=NAME)
def model() -> run.Config[pl.LightningModule]:
    """The model, and how a loop looks: `for x in y:` here is text."""
    return run.Config(LlamaModel, config=run.Config(Llama31Config70B))


def trainer(
    tensor: int = 4,
    pipeline: int = 4,
    pipeline_dtype: Optional[torch.dtype] = torch.bfloat16,
    chunks: Optional[int] = 5,
    context: int = 2,
    sequence_parallelism: bool = True,
    num_nodes: int = 4,
    num_gpus_per_node: int = 8,
    max_steps: int = 1_000_000,
    callbacks: Optional[list[run.Config[Callback]]] = None,
) -> run.Config[nl.Trainer]:
    strategy = run.Config(
        nl.MegatronStrategy,
        tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline,
        pipeline_dtype=pipeline_dtype,
        virtual_pipeline_model_parallel_size=chunks,
        context_parallel_size=context,
        sequence_parallel=sequence_parallelism,
        gradient_as_bucket_view=True,
        ckpt_async_save=True,
        ckpt_include_optimizer=True,
        ddp=run.Config(
            DistributedDataParallelConfig,
            check_for_nan_in_grad=True,
            grad_reduce_in_fp32=True,
            overlap_grad_reduce=True,
            overlap_param_gather=True,
        ),
    )
    return run.Config(
        nl.Trainer,
        accelerator="gpu",
        accumulate_grad_batches=1,
        callbacks=callbacks,
        devices=num_gpus_per_node,
        limit_val_batches=32,
        max_steps=max_steps,
        num_nodes=num_nodes,
        plugins=bf16_mixed(),
        strategy=strategy,
        use_distributed_sampler=False,
        val_check_interval=2000,
    )


@run.cli.factory(target=pretrain, name=NAME)
def pretrain_recipe(
    dir: Optional[str] = None, name: str = "default", num_nodes: int = 16, num_gpus_per_node: int = 8,
    performance_mode: bool = False, fn=pretrain
) -> run.Partial:
    recipe = run.Partial(
        fn,
        model=model(),
        trainer=trainer(num_nodes=num_nodes, num_gpus_per_node=num_gpus_per_node,
                        callbacks=[run.Config(TimingCallback)]),
        data=run.Config(MockDataModule, seq_length=8192, global_batch_size=512, micro_batch_size=1),
        log=default_log(dir=dir, name=name),
        optim=distributed_fused_adam_with_cosine_annealing(max_lr=3e-4),
        resume=default_resume(),
    )
    if performance_mode:
        recipe = faster(recipe)
    return recipe


def faster(recipe: run.Partial) -> run.Partial:
    if not recipe.trainer.callbacks:
        recipe.trainer.callbacks = []
    overlap = run.Config(
        MegatronCommOverlapCallback,
        tp_comm_overlap=True,
        tp_comm_overlap_cfg=userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192,
        defer_embedding_wgrad_compute=True,
        wgrad_deferral_limit=22,
    )
    recipe.trainer.callbacks.extend([overlap])
    recipe.trainer.plugins.grad_reduce_in_fp32 = False
    recipe.optim.config.use_precision_aware_optimizer = False
    return recipe


@run.cli.factory(target=finetune, name=NAME)
def finetune_recipe(dir: Optional[str] = None, name: str = "default", num_nodes: int = 1,
                    peft_scheme: Optional[str] = "lora") -> run.Partial:
    recipe = pretrain_recipe(name=name, dir=dir, num_nodes=num_nodes, fn=finetune)
    if peft_scheme is None or peft_scheme.lower() == "none":
        recipe.trainer.strategy.tensor_model_parallel_size = 8
    elif peft_scheme.lower() in ["lora", "dora"]:
        recipe.peft = run.Config(LoRA)
    else:
        raise ValueError(f"Unrecognized peft scheme: {peft_scheme}")
    return recipe
