"""tpsim_recipes lets small frameworks judge arguments and configuration files. Argument: the folder with the package."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGES = pathlib.Path(sys.argv.pop(1)).resolve()
START = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('tpsim_recipes', run_name='__main__', alter_sys=True)"

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
    return {"ACCELERATE_MIXED_PRECISION": args.precision, "FSDP_AUTO_WRAP_POLICY": "NO_WRAP"}
""",
    "accelerate/utils/dataclasses.py": """
import os
from torch.distributed.fsdp import CPUOffload, ShardingStrategy


class FullyShardedDataParallelPlugin:
    def __init__(self):
        self.sharding_strategy = ShardingStrategy(1)
        self.cpu_offload = CPUOffload(offload_params=False)

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


class Judges(unittest.TestCase):
    def judge(self, framework, checkout, given, **files):
        with tempfile.TemporaryDirectory() as kept:
            folder = pathlib.Path(kept).resolve()
            for name, text in checkout.items():
                path = folder / "checkout" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            (folder / "given").mkdir()
            for name, text in {"arguments.json": json.dumps({"arguments": [], **given}), **files}.items():
                (folder / "given" / name.replace("_", ".")).write_text(text, encoding="utf-8")
            command = [sys.executable, "-I", "-S", "-c", START, str(PACKAGES), "--checkout", str(folder / "checkout"), "check",
                       framework, str(folder / "given" / "arguments.json")]
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)

    def titan(self, *words, layers=2, module=""):
        return self.judge("torchtitan", TITAN, {"arguments": list(words), "environment": {"WORLD_SIZE": "8"}, "module": module,
                                                "model": {"layers": layers, "hidden": 32, "experts": 0}})

    def test_torchtitan_configurations_are_changed_by_the_module_of_the_script(self):
        words = ("--parallelism.shards", "8", "--module", "torchtitan_plan", "--config", "narrow")
        answer = self.titan(*words, module=MODULE)
        self.assertIn("more shards than columns", answer["message"])
        missing = self.titan(*words, module=MODULE, layers=3)
        self.assertTrue(missing["accepted"], missing)
        self.assertEqual(missing["settings"]["config"], "narrow")

    def test_torchtitan_resolves_the_options_and_checks_the_trainer(self):
        answer = self.titan("--parallelism.shards", "8", "--parallelism.no-sequence", "--parallelism.policy=never")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"], {"parallelism.shards": 8, "parallelism.no_sequence": True,
                                              "parallelism.policy": "never"})
        self.assertNotIn("notes", answer)
        chosen = self.titan("--parallelism.shards", "8", "recompute:full", "--recompute.debug")
        self.assertEqual((chosen["accepted"], chosen["settings"]["recompute"]), (True, "full"))
        self.assertIn("registry has no configuration", self.titan("--parallelism.shards", "8", layers=3)["notes"][0])
        chunks = ("--parallelism.shards", "8", "--loss.num_chunks", "4")
        self.assertIn("unrecognized option: --loss.num_chunks", self.titan(*chunks)["message"])
        self.assertEqual(self.titan(*chunks, layers=3)["settings"]["loss.num_chunks"], 4)

    def test_torchtitan_rejects_options_with_its_message(self):
        for words, message in ((["--parallelism.shards", "4"], "4 shards on 8 ranks"),
                               (["--parallelism.shards", "65"], "at most 64 shards"),
                               (["--parallelism.shard", "8"], "unrecognized option: --parallelism.shard"),
                               (["--parallelism.policy", "ever"], "choose from always, never"),
                               (["--parallelism.shards", "many"], "not of type int"),
                               (["--parallelism.shards"], "needs a value"),
                               (["--model_spec", "x"], "unrecognized option"),
                               (["--recompute.debug"], "unrecognized option"),
                               (["recompute:some"], "unrecognized argument"),
                               (["--parallelism.sequence=true"], "does not take a value")):
            answer = self.titan(*words)
            self.assertFalse(answer["accepted"], words)
            self.assertIn(message, answer["message"])

    def engine(self, zero, batch=16):
        return self.judge("megatron-deepspeed", ENGINE, {
            "file": "ds.json", "environment": {"WORLD_SIZE": "8"}, "arguments": ["--tensor-model-parallel-size", "2"]},
            ds_json=json.dumps({"train_batch_size": batch, "zero_optimization": zero}))

    def test_deepspeed_reads_its_json(self):
        answer = self.engine({"stage": 3, "bucket_size": "7", "offload": {"device": "cpu"}})
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["zero_optimization.stage"], 3)
        self.assertEqual(answer["settings"]["zero_optimization.offload.device"], "cpu")
        for zero, message in (({"stage": 5}, "one of 0, 3"), ({"bucket_size": 0}, "at least 1"),
                              ({"level": 1}, "no field 'level'"), ({"offload": {}}, "offload needs stage 3")):
            self.assertIn(message, self.engine(zero)["message"])
        self.assertIn("batch", self.engine({}, batch=6)["message"])

    def test_deepspeed_reads_the_json_of_a_trainer(self):
        def judged(tensor, *words):
            text = json.dumps({"train_batch_size": 4, "zero_optimization": {"stage": 3},
                               "data_types": {"grad_accum_dtype": "fp32"}, "tensor_parallel": {"autotp_size": tensor}})
            engine = {**ENGINE, "deepspeed/runtime/config.py": ENGINE["deepspeed/runtime/config.py"] + """
        self.grad_accum_dtype = given["data_types"]["grad_accum_dtype"]
        self.tensor_parallel_config = given["tensor_parallel"]
"""}
            return self.judge("deepspeed", {**engine, **TRAINER}, {
                "file": "ds.json", "environment": {"WORLD_SIZE": "8"}, "arguments": list(words)}, ds_json=text)
        answer = judged(2, "--per_device_train_batch_size", "1", "--bf16", "true")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["data_types.grad_accum_dtype"], "fp32")
        self.assertEqual(answer["settings"]["tensor_parallel.autotp_size"], 2)
        self.assertEqual(answer["settings"]["per_device_train_batch_size"], 1)
        self.assertIn("batch", judged(1)["message"])  # 8 ranks for 4 samples
        self.assertIn("unrecognized arguments", judged(2, "--other", "1")["message"])

    def launcher(self, kind, precision):
        text = f"# a comment\ndistributed_type: {kind}\nfsdp_config:\n  fsdp_offload_params: false\n" \
            f"  fsdp_sharding_strategy: FULL_SHARD\nmixed_precision: {precision}\nnum_machines: 2\n"
        return self.judge("accelerate", LAUNCHER, {"file": "run.yaml", "environment": {}}, run_yaml=text)

    def test_accelerate_reads_its_yaml(self):
        answer = self.launcher("FSDP", "bf16")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["fsdp_config.fsdp_sharding_strategy"], "FULL_SHARD")
        self.assertIs(answer["settings"]["fsdp_config.fsdp_offload_params"], False)
        self.assertEqual(answer["settings"]["num_machines"], 1)
        self.assertIn("'bool' object", self.launcher("FSDP", "no")["message"])  # YAML 1.1 reads false
        self.assertIs(self.launcher("NO", "'no'")["settings"]["distributed_type"], False)

    def trainer(self, *words):
        return self.judge("accelerate", {**LAUNCHER, **TRAINER}, {
            "file": "run.yaml", "environment": {}, "arguments": list(words)},
            run_yaml="distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\n")

    def test_transformers_reads_the_arguments_of_the_script(self):
        answer = self.trainer("--per_device_train_batch_size", "-2", "--max_length", "64", "--bf16", "true")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["per_device_train_batch_size"], 2)
        self.assertNotIn("notes", answer)
        for words, message in ((["--per_device_train_batch", "2"], "unrecognized arguments: --per_device_train_batch"),
                               (["--per_device_train_batch_size", "two"], "invalid int value")):
            self.assertIn(message, self.trainer(*words)["message"])
        self.assertIn("transformers is not in a checkout", self.launcher("FSDP", "bf16")["notes"][0])

    def bridge(self, **fields):
        kind = "megatron.bridge.training.mixed_precision.MixedPrecisionConfig"
        return self.judge("megatron-bridge", BRIDGE, {"environment": {}, "model": {"num_layers": 4}, "overrides": {
            "model.seq_length": 32, "mixed_precision._target_": kind,
            **{f"mixed_precision.{key}": value for key, value in fields.items()}}})

    def test_megatron_bridge_creates_the_objects_of_sections(self):
        answer = self.bridge(fp8="hybrid", gathers=True, **{"params._target_": "enum.Enum", "params._call_": False})
        self.assertEqual(answer.get("settings"), {"model.seq_length": 32, "mixed_precision.fp8": "hybrid",
                                                  "mixed_precision.gathers": True}, answer)
        self.assertIn("nothing to gather", self.bridge(gathers=True)["message"])
        self.assertIn("mixed_precision.fp9 is not a setting", self.bridge(fp9="hybrid")["message"])

    def test_a_checkout_of_another_framework_is_refused(self):
        given = {"overrides": {}, "arguments": [], "environment": {}, "file": "run.yaml"}
        for framework, module in (("megatron-lm", "megatron.training"), ("megatron-bridge", "megatron.bridge"),
                                  ("accelerate", "accelerate.commands"), ("torchtitan", "torchtitan")):
            answer = self.judge(framework, {"other/__init__.py": ""}, given, run_yaml="a: 1")
            self.assertIn("the checkouts do not contain " + module, answer.get("error", ""), framework)


unittest.main()
