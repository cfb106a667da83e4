"""Checks a configuration file of accelerate with the code of `accelerate launch`, and the arguments of the training
script with transformers' TrainingArguments if a checkout contains transformers.
"""
import os
import pathlib
import sys

import yaml

from tpsim_recipes import check, plain
from tpsim_recipes.check import Rejected

FSDP = "fsdp_config."
NO_TRAINER = "transformers is not in a checkout: its TrainingArguments did not check the arguments"
# Arguments of TRL's scripts that transformers' TrainingArguments lacks: SFTConfig and ModelConfig.
OF_SCRIPTS = ("--max_length", "--attn_implementation")


def accelerate(file, sources):
    given, finder = check.prepared(file, sources, "accelerate")
    os.environ["USE_TORCH_XLA"] = "0"
    notes = []
    has_trainer = uses_transformers(finder)

    def work():
        check.require("accelerate.commands.launch")
        from accelerate.commands import launch  # pylint: disable=import-error,import-outside-toplevel
        from accelerate.utils import launch as environments  # pylint: disable=import-error,import-outside-toplevel
        environments.is_port_in_use = lambda *_: False
        path = file.parent / given["file"]
        words = ["--config_file", str(path), "train.py", *given.get("arguments", [])]
        parsed, config, _ = launch._validate_launch_command(  # pylint: disable=protected-access
            launch.launch_command_parser().parse_args(words))
        environment = environments.prepare_multi_gpu_env(parsed) if parsed.multi_gpu or parsed.use_fsdp \
            else environments.prepare_simple_launcher_cmd_env(parsed)[1]
        os.environ.update(environment)
        stated = flat(yaml.safe_load(path.read_text(encoding="utf-8")))
        settings = {key: resolved(key, parsed, config, plugin_of(parsed, environment)) for key in stated}
        if has_trainer:
            settings.update(trainer_settings(given.get("arguments", [])))
        else:
            notes.append(NO_TRAINER)
        return settings
    return check.answer_of(work, finder, notes)


def uses_transformers(finder):
    """Returns whether a checkout contains transformers. If so, transformers replaces the stand-in for recipes."""
    found = any((pathlib.Path(folder) / "transformers" / "training_args.py").is_file() for folder in sys.path)
    if found:
        finder.replaced.pop("transformers", None)
    return found


def trainer_settings(words):
    """Returns the arguments of the training script as transformers resolves them."""
    from transformers import hf_argparser, training_args  # pylint: disable=import-error,import-outside-toplevel
    training_args.is_torch_bf16_gpu_available = lambda: True
    training_args.TrainingArguments.device = None
    parser = hf_argparser.HfArgumentParser(training_args.TrainingArguments)
    trainer, rest = parser.parse_args_into_dataclasses(args=["--output_dir", "out", *words], return_remaining_strings=True)
    unknown = [word for word in rest if word.startswith("--") and word not in OF_SCRIPTS]
    if unknown:
        raise Rejected(f"unrecognized arguments: {' '.join(unknown)}")
    return {word[2:]: plain.Walk().plain(getattr(trainer, word[2:], None)) for word in words
            if word.startswith("--") and word not in OF_SCRIPTS}


def plugin_of(parsed, environment):
    """Returns FSDP's settings as accelerate's Accelerator reads them from the environment. None without FSDP."""
    if not parsed.use_fsdp:
        return None
    from accelerate.utils.dataclasses import FullyShardedDataParallelPlugin  # pylint: disable=import-error,import-outside-toplevel
    plugin = FullyShardedDataParallelPlugin()
    if environment["ACCELERATE_MIXED_PRECISION"] in ("bf16", "fp16"):
        plugin.set_mixed_precision(environment["ACCELERATE_MIXED_PRECISION"])
    return plugin


# Keys of the file whose names in FSDP's settings differ.
RENAMED = {"version": "fsdp_version"}


def resolved(key, parsed, config, plugin):
    """Returns the value that a key of the file has in accelerate."""
    name = key[len(FSDP) + len("fsdp_"):] if key.startswith(FSDP) else key.rpartition(".")[2]
    if key.startswith(FSDP) and plugin is not None:
        value = getattr(plugin, RENAMED.get(name, name), None)
        if name == "auto_wrap_policy":  # a function of PyTorch
            value = os.environ["FSDP_AUTO_WRAP_POLICY"]
        elif name == "offload_params":  # in FSDP 2 a policy of PyTorch
            value = os.environ["FSDP_OFFLOAD_PARAMS"] == "true"
    elif name in ("compute_environment", "distributed_type"):
        value = getattr(getattr(config, name), "value", getattr(config, name))
    else:
        value = getattr(parsed, name, None)
    return plain.Walk().plain(value)


def flat(config, prefix=""):
    """Returns the values of nested mappings by their dotted keys."""
    found = {}
    for key, value in config.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value})
    return found
