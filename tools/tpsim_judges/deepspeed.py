"""Checks the files of Megatron-DeepSpeed and of a Trainer with DeepSpeed. DeepSpeed's configuration classes check the
JSON. The parser of the fork of Megatron-LM, or transformers' TrainingArguments, check the arguments if a checkout contains
them.
"""
import json
import os

from tpsim_recipes import check, plain, recorders

from .accelerate import NO_TRAINER, flat, trainer_settings, uses_transformers

FORK = "megatron/arguments.py"
NO_FORK = "Megatron-DeepSpeed is not in a checkout: its parser did not check the arguments"


def megatron_deepspeed(file, sources):
    given, finder = check.prepared(file, sources, "pretrain_gpt.py")
    notes = []

    def work():
        require_deepspeed(sources)
        settings = engine_settings(file.parent / given["file"], degrees_of(given["arguments"]))
        if any((folder / FORK).is_file() for folder in sources):
            settings.update(arguments_settings())
        else:
            notes.append(NO_FORK)
        return settings
    return check.answer_of(work, finder, notes)


def require_deepspeed(sources):
    if not any((folder / "deepspeed" / "runtime").is_dir() for folder in sources):
        raise recorders.Refusal("the checkouts do not contain DeepSpeed", "give its checkout to --check")


def deepspeed(file, sources):
    """Checks the JSON and the arguments of a Trainer."""
    given, finder = check.prepared(file, sources, "train.py")
    notes = []
    has_trainer = uses_transformers(finder)

    def work():
        require_deepspeed(sources)
        path = file.parent / given["file"]
        stated = json.loads(path.read_text(encoding="utf-8"))
        settings = engine_settings(path, stated.get("tensor_parallel", {}).get("autotp_size", 1))
        if has_trainer:
            words = [str(path) if word == given["file"] else word for word in given["arguments"]]
            settings.update({**trainer_settings(words), "deepspeed": given["file"]})
        else:
            notes.append(NO_TRAINER)
        return settings
    return check.answer_of(work, finder, notes)


def degrees_of(words):
    """Returns the product of the degrees that share one copy of the data: tensor and pipeline parallelism."""
    product = 1
    for option in ("--tensor-model-parallel-size", "--pipeline-model-parallel-size"):
        if option in words:
            product *= int(words[words.index(option) + 1])
    return product


class Ranks:
    """Replaces Megatron's module of process groups, of which DeepSpeed's configuration reads the data-parallel size."""

    def __init__(self, size):
        self.size = size

    def get_data_parallel_world_size(self):
        return self.size


def engine_settings(path, degrees):
    """Returns the values that DeepSpeed resolves for the keys of the JSON file."""
    import hjson  # pylint: disable=import-error,import-outside-toplevel
    hjson.load = json.load
    check.require("deepspeed.runtime.config")
    from deepspeed import comm  # pylint: disable=import-error,import-outside-toplevel
    from deepspeed.runtime.config import DeepSpeedConfig  # pylint: disable=import-error,import-outside-toplevel
    comm.get_rank = lambda *_: 0
    gpus = int(os.environ.get("WORLD_SIZE", "1"))
    config = DeepSpeedConfig(str(path), mpu=Ranks(gpus // degrees))
    stated = flat(json.loads(path.read_text(encoding="utf-8")))
    return {key: plain.Walk().plain(value_at(config, key)) for key in stated}


# Attributes of DeepSpeed's configuration that hold the sections of the JSON.
SECTIONS = {"zero_optimization": "zero_config", "bf16": "bfloat16_config", "fp16": "float16_config",
            "tensor_parallel": "tensor_parallel_config"}
# Keys that the configuration holds without their section.
FLAT = {"data_types.grad_accum_dtype": "grad_accum_dtype", "torch_autocast.enabled": "torch_autocast_enabled",
        "torch_autocast.dtype": "torch_autocast_dtype"}


def value_at(config, key):
    """Returns the resolved value of a key. None if the configuration does not hold the key."""
    first, *rest = FLAT.get(key, key).split(".")
    owner = getattr(config, SECTIONS.get(first, first), None)
    for name in rest:
        owner = owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)
    return owner


def arguments_settings():
    """Returns the arguments that the fork's parser resolves."""
    from megatron import arguments  # pylint: disable=import-error,import-outside-toplevel
    parsed = arguments.parse_args()
    return {name: plain.Walk().plain(value) for name, value in vars(parsed).items()}
