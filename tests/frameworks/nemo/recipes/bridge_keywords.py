# A recipe of Megatron-Bridge's first releases: keywords over recommended ones, into one function.
import os
from typing import List, Optional, Union

import torch
from megatron.core.distributed import DistributedDataParallelConfig
from typing_extensions import TypedDict, Unpack

from megatron.bridge import AutoBridge
from megatron.bridge.recipes.utils.dataset_utils import get_blend_fields_from_data_paths
from megatron.bridge.recipes.utils.optimizer_utils import distributed_fused_adam_with_cosine_annealing
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.config import ConfigContainer, GPTDatasetConfig, TrainingConfig
from megatron.bridge.training.mixed_precision import MixedPrecisionConfig, bf16_mixed


class CommonKeywords(TypedDict, total=False):
    """What the recipes here take."""

    hf_path: str
    tensor_parallelism: int
    global_batch_size: int


def mixtral_8x7b_pretrain_config(**user_kwargs: Unpack[CommonKeywords]) -> ConfigContainer:
    """See `_common`."""
    recommended: CommonKeywords = {
        "hf_path": "mistralai/Mixtral-8x7B-v0.1",
        "tensor_parallelism": 1,
        "pipeline_parallelism": 4,
        "virtual_pipeline_parallelism": 8,
        "expert_parallelism": 8,
    }
    combined: CommonKeywords = {**recommended, **user_kwargs}
    return _common(**combined)


def _common(
    hf_path: str,
    dir: str | None = None,
    name: str = "default",
    data_paths: Optional[List[str]] = None,
    mock: bool = False,
    tensor_parallelism: int = 1,
    pipeline_parallelism: int = 1,
    virtual_pipeline_parallelism: Optional[int] = None,
    context_parallelism: int = 1,
    expert_parallelism: int | None = 1,
    sequence_parallelism: bool = False,
    use_megatron_fsdp: bool = False,
    enable_recompute: bool = False,
    global_batch_size: int = 1_024,
    micro_batch_size: int = 1,
    seq_length: int = 4096,
    lr: float = 3e-4,
    precision_config: Optional[Union[MixedPrecisionConfig, str]] = None,
    comm_overlap_config: Optional[CommOverlapConfig] = None,
) -> ConfigContainer:
    base = dir if dir is not None else os.path.join(os.getcwd(), "nemo_experiments")
    checkpoints = os.path.join(os.path.join(base, name), "checkpoints")
    blend, blend_per_split, split = get_blend_fields_from_data_paths(data_paths, mock)

    bridge = AutoBridge.from_hf_pretrained(hf_path)
    model_cfg = bridge.to_megatron_provider(load_weights=False)
    model_cfg.tensor_model_parallel_size = tensor_parallelism
    model_cfg.pipeline_model_parallel_size = pipeline_parallelism
    model_cfg.virtual_pipeline_model_parallel_size = virtual_pipeline_parallelism
    model_cfg.context_parallel_size = context_parallelism
    model_cfg.expert_model_parallel_size = expert_parallelism
    model_cfg.sequence_parallel = sequence_parallelism
    if enable_recompute:
        model_cfg.recompute_granularity = "selective"
        model_cfg.recompute_modules = ["layernorm", "moe_act"]
    model_cfg.seq_length = seq_length

    if precision_config is None:
        precision_config = bf16_mixed()
    if isinstance(precision_config, MixedPrecisionConfig):
        precision_config.grad_reduce_in_fp32 = False

    opt_config, scheduler = distributed_fused_adam_with_cosine_annealing(max_lr=lr, min_lr=lr / 10)
    scheduler.no_weight_decay_cond_type = "qwen3_next"

    cfg = ConfigContainer(
        model=model_cfg,
        train=TrainingConfig(
            train_iters=500_000,
            eval_interval=2000,
            global_batch_size=global_batch_size,
            micro_batch_size=micro_batch_size,
            manual_gc=True,
        ),
        optimizer=opt_config,
        scheduler=scheduler,
        ddp=DistributedDataParallelConfig(
            grad_reduce_in_fp32=True,
            overlap_grad_reduce=True,
            overlap_param_gather=True,
            average_in_collective=True,
            use_distributed_optimizer=True,
            use_megatron_fsdp=use_megatron_fsdp,
        ),
        dataset=GPTDatasetConfig(sequence_length=seq_length, blend=blend, split=split, num_workers=8),
        comm_overlap=comm_overlap_config,
        mixed_precision=precision_config,
    )
    if cfg.comm_overlap is None:
        cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)
    return cfg
