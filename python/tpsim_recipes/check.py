"""Checks the arguments of a launch file with the framework's own code, and returns the resolved values.

A judge takes a JSON file, {"arguments": [word], "overrides": {key: value}, "environment": {name: value}}, and the
folders to import from. It returns {"accepted": bool, "message", "where", "settings": {name: value}}.
"""
import argparse
import json
import os
import sys

from . import plain, recipe


class Rejected(Exception):
    """The framework's argument parser stopped with this message."""


def raise_message(_parser, message):
    raise Rejected(message)


def where_of(error):
    """Returns the last line of the checkout in the error's traceback."""
    trace, place = error.__traceback__, ""
    while trace:
        name = trace.tb_frame.f_code.co_filename
        if any(name.startswith(folder + os.sep) for folder in sys.path) and os.path.dirname(__file__) not in name \
                and not name.startswith(sys.base_prefix):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def judged(work):
    argparse.ArgumentParser.error = raise_message
    try:
        return {"accepted": True, "settings": work()}
    except Exception as error:  # pylint: disable=broad-except
        message = str(error) or f"{type(error).__name__} without a message"
        return {"accepted": False, "message": message, "where": where_of(error)}


def prepared(file, sources, program):
    given = json.loads(file.read_text(encoding="utf-8"))
    finder = recipe.prepare(sources, given.get("gpu", "h100"))
    os.environ.update({"RANK": "0", "LOCAL_RANK": "0", **given["environment"]})
    sys.argv = [program, *given.get("arguments", [])]
    return given, finder


def with_stubs(answer, finder):
    """Adds modules that could not be loaded: they make the result doubtful."""
    if finder.failed:
        answer["stubs"] = finder.failed
    return answer


def megatron_lm(file, sources):
    _, finder = prepared(file, sources, "pretrain_gpt.py")

    def work():
        from megatron.training import arguments  # pylint: disable=import-error,import-outside-toplevel
        parsed = arguments.parse_args()
        arguments.validate_args(parsed, {})
        arguments.core_transformer_config_from_args(parsed)
        return {name: plain.Walk().plain(value) for name, value in vars(parsed).items()}
    return with_stubs(judged(work), finder)


def value_at(owner, key):
    for name in key.split("."):
        owner = getattr(owner, name)
    return plain.Walk().plain(owner)


def megatron_bridge(file, sources):
    """Applies overrides of a recipe to the configuration with which all recipes for pre-training start."""
    given, finder = prepared(file, sources, "pretrain.py")

    def work():
        from megatron.bridge.models.gpt_provider import GPTModelProvider  # pylint: disable=import-error,import-outside-toplevel
        from megatron.bridge.recipes.common import _pretrain_common  # pylint: disable=import-error,import-outside-toplevel
        from megatron.bridge.training.comm_overlap import CommOverlapConfig  # pylint: disable=import-error,import-outside-toplevel
        from megatron.bridge.training.config import runtime_config_update  # pylint: disable=import-error,import-outside-toplevel
        config = _pretrain_common()
        overrides = given["overrides"]
        shape = {key.partition(".")[2]: value for key, value in overrides.items() if key.startswith("model.")}
        config.model = GPTModelProvider(**{name: shape[name] for name in ("num_layers", "hidden_size", "num_attention_heads")})
        for key, value in overrides.items():
            *sections, name = key.split(".")
            owner = config
            for section in sections:
                if section == "comm_overlap" and owner.comm_overlap is None:
                    owner.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)
                if getattr(owner, section, None) is None:
                    raise Rejected(f"the configuration has no section {section}")
                owner = getattr(owner, section)
            if not hasattr(owner, name):
                raise Rejected(f"{key} is not a setting")
            setattr(owner, name, value)
        config.dataset.seq_length = config.model.seq_length  # data is the user's
        runtime_config_update(config)
        return {key: value_at(config, key) for key in overrides}
    return with_stubs(judged(work), finder)


JUDGES = {"megatron-bridge": megatron_bridge, "megatron-lm": megatron_lm}
