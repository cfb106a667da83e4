"""Sources of small frameworks with the parsers and checks that tpsim_recipes calls, by path."""

TITAN = {
    "torchtitan/__init__.py": "", "torchtitan/config/__init__.py": "", "torchtitan/models/tiny/__init__.py": "",
    "torchtitan/config/configurable.py": """
class Configurable:
    class Config:
        def build(self, **words):
            raise RuntimeError("this builds")
""",
    "torchtitan/config/manager.py": """
import importlib
import tyro


class ConfigManager:
    def parse_args(self, args):
        names, rest, words = {}, [], iter(args)
        for word in words:
            if word in ("--module", "--config"):
                names[word] = next(words)
            else:
                rest.append(word)
        try:
            module = importlib.import_module(names["--module"] + ".config_registry")
        except ImportError:
            module = importlib.import_module(names["--module"])
        config = getattr(module, names["--config"])()
        return tyro.cli(type(config), args=rest, default=config)
""",
    "torchtitan/distributed/utils.py": "def init_distributed():\n    raise RuntimeError('this starts ranks')\n",
    "torchtitan/distributed/pipeline_parallel.py": "def _pipeline_module_split(*places):\n    raise RuntimeError('this cuts')\n",
    "torchtitan/distributed/__init__.py": """
class ParallelDims:
    def __init__(self, shards, world):
        self.dp_replicate, self.dp_shard = 1, shards
        assert shards == world, f"{shards} shards on {world} ranks"
""",
    "torchtitan/components/__init__.py": "",
    "torchtitan/components/loss.py": """
from dataclasses import dataclass


class BaseLoss:
    @dataclass(kw_only=True, slots=True)
    class Config:
        scale: float = 1.0


class ChunkedLossWrapper(BaseLoss):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseLoss.Config):
        num_chunks: int = 8
""",
    "torchtitan/trainer.py": """
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro
from torchtitan.components.loss import BaseLoss
from torchtitan.distributed import ParallelDims, utils


@dataclass(kw_only=True, slots=True)
class Parallelism:
    shards: int = 1
    pipeline_parallel_degree: int = 1
    policy: Literal["always", "never"] = "always"
    sequence: bool = True

    def __post_init__(self):
        if self.shards > 64:
            raise ValueError("at most 64 shards")


@dataclass
class Full:
    debug: bool = False


class Trainer:
    @dataclass(kw_only=True, slots=True)
    class Config:
        model_spec: Annotated[Any, tyro.conf.Suppress] = None
        parallelism: Parallelism = field(default_factory=Parallelism)
        loss: BaseLoss.Config = field(default_factory=BaseLoss.Config)
        recompute: Annotated[Full, tyro.conf.subcommand("full")] | Annotated[None, tyro.conf.subcommand("none")] = None

    def __init__(self, config):
        self.config = config
        self.init_distributed()
        if config.parallelism.shards > config.model_spec.model.dim:
            raise ValueError("more shards than columns")
        config.model_spec.parallelize_fn(None)
        raise RuntimeError("this trains")

    def init_distributed(self):
        return ParallelDims(self.config.parallelism.shards, utils.init_distributed())
""",
    "torchtitan/models/__init__.py": "_supported_models = {'tiny'}\n",
    "torchtitan/models/tiny/config_registry.py": """
from types import SimpleNamespace

from torchtitan.trainer import Trainer


class Model:
    dim, layers = 32, [None, None]


def tiny() -> Trainer.Config:
    return Trainer.Config(model_spec=SimpleNamespace(model=Model(), pipelining_fn=None))
""",
}
MODULE = """
import importlib
import sys


def __getattr__(names):
    if names != "narrow":
        raise AttributeError(names)
    module, name = (sys.argv[sys.argv.index(option) + 1] for option in ("--module", "--config"))
    config = getattr(importlib.import_module(f"torchtitan.models.{module}.config_registry"), name)()
    config.model_spec.model.dim = 4
    return lambda: config
"""
ENGINE = {
    "deepspeed/__init__.py": "", "deepspeed/runtime/__init__.py": "", "deepspeed/comm.py": "",
    "deepspeed/runtime/config.py": """
import enum
from typing import Optional

import hjson
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class Stage(int, enum.Enum):
    off = 0
    all = 3


class Offload(BaseModel):
    device: str = "none"


class Zero(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True, use_enum_values=True)
    stage: Stage = 0
    bucket: int = Field(100, ge=1, alias="bucket_size")
    offload: Optional[Offload] = None

    @field_validator("bucket", mode="before")
    @classmethod
    def whole(cls, value, info):
        assert not isinstance(value, bool), info.field_name
        return value

    @model_validator(mode="after")
    def pair(self):
        assert self.offload is None or self.stage == Stage.all, "offload needs stage 3"
        return self


class DeepSpeedConfig:
    def __init__(self, path, mpu):
        given = hjson.load(open(path))
        self.zero_config = Zero(**given["zero_optimization"])
        self.train_batch_size = given["train_batch_size"]
        assert self.train_batch_size % mpu.get_data_parallel_world_size() == 0, "batch"
""",
}
LAUNCHER = {
    "accelerate/__init__.py": "", "accelerate/commands/__init__.py": "", "accelerate/utils/__init__.py": "",
    "accelerate/commands/launch.py": """
import argparse
from types import SimpleNamespace

import yaml


def launch_command_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config_file")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def _validate_launch_command(args):
    config = yaml.safe_load(open(args.config_file))
    args.use_fsdp, args.multi_gpu = config["distributed_type"] == "FSDP", True
    args.precision = config["mixed_precision"].lower()
    args.num_machines = 1
    return args, SimpleNamespace(**config), False
""",
    "accelerate/utils/launch.py": """
def prepare_multi_gpu_env(args):
    return {"ACCELERATE_MIXED_PRECISION": args.precision, "FSDP_AUTO_WRAP_POLICY": "NO_WRAP",
            "FSDP_OFFLOAD_PARAMS": "false"}
""",
    "accelerate/utils/dataclasses.py": """
import os
from torch.distributed.fsdp import OffloadPolicy


class FullyShardedDataParallelPlugin:
    def __init__(self):
        self.fsdp_version, self.reshard_after_forward = 2, True
        self.cpu_offload = OffloadPolicy()

    def set_mixed_precision(self, name):
        assert name == os.environ["ACCELERATE_MIXED_PRECISION"]
""",
}
TRAINER = {
    "transformers/__init__.py": "",
    "transformers/training_args.py": """
from dataclasses import dataclass


def is_torch_bf16_gpu_available():
    return False


@dataclass
class TrainingArguments:
    output_dir: str = ""
    per_device_train_batch_size: int = 8
    bf16: bool = False

    def __post_init__(self):
        if self.bf16 and not is_torch_bf16_gpu_available():
            raise ValueError("this setup does not support bf16")
        self.per_device_train_batch_size = abs(self.per_device_train_batch_size)
""",
    "transformers/hf_argparser.py": """
from argparse import ArgumentParser


class HfArgumentParser(ArgumentParser):
    def __init__(self, kind):
        super().__init__(allow_abbrev=False)
        self.kind = kind
        for name, type in kind.__annotations__.items():
            self.add_argument("--" + name, type=type, default=getattr(kind, name))

    def parse_args_into_dataclasses(self, args, return_remaining_strings):
        known, rest = self.parse_known_args(args)
        return self.kind(**vars(known)), rest
""",
}
BRIDGE = {
    **{f"megatron/{name}__init__.py": "" for name in (
        "", "core/", "bridge/", "bridge/recipes/", "bridge/training/", "bridge/models/", "bridge/utils/")},
    "megatron/bridge/training/config.py": """
def runtime_config_update(config):
    precision = config.mixed_precision
    if precision.fp8 == "none" and precision.gathers:
        raise ValueError("nothing to gather")
    config.model.fp8 = precision.fp8
""",
    "megatron/bridge/training/comm_overlap.py": "class CommOverlapConfig:\n    pass\n",
    "megatron/bridge/training/mixed_precision.py": """
from dataclasses import dataclass
from typing import Any


@dataclass
class MixedPrecisionConfig:
    params: Any = None
    fp8: str = "none"
    gathers: bool = False
""",
    "megatron/bridge/utils/activation_map.py": "def str_to_dtype(name):\n    return name\n",
    "megatron/bridge/recipes/common.py": """
from types import SimpleNamespace


def _pretrain_common():
    return SimpleNamespace(mixed_precision="bf16_mixed", comm_overlap=None, dataset=SimpleNamespace())
""",
    "megatron/bridge/models/gpt_provider.py": """
from dataclasses import dataclass


@dataclass
class GPTModelProvider:
    num_layers: int = 2
    seq_length: int = 16
    fp8: str = "none"
""",
}
