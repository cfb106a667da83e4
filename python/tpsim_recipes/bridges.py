"""Reads from the sources of Megatron-Bridge which fused kernels it selects for a Hugging Face model."""
import ast
import functools
import importlib
import pathlib
import re


def letters(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


@functools.cache
def selected():
    """Returns the fusions by architecture in letters: {"qwen3moe": {"moe_permute_fusion": True}}."""
    found = {}
    for folder in importlib.import_module("megatron.bridge.models").__path__:
        for path in sorted(pathlib.Path(folder).rglob("*_bridge.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found.update({letters(source): fusions_in(node) for source in architectures_of(node)})
    return found


def architectures_of(bridge):
    """Returns the Hugging Face architectures for which a class is registered: @register_bridge(source=NAME)."""
    words = [word for one in bridge.decorator_list if isinstance(one, ast.Call) for word in one.keywords]
    names = [getattr(word.value, "value", getattr(word.value, "id", None)) for word in words if word.arg == "source"]
    return [name.removesuffix("ForCausalLM") for name in names if isinstance(name, str)]


def fusions_in(bridge):
    """Returns the constants that a class assigns to fields "..._fusion", as an attribute or a keyword."""
    found = {}
    for node in ast.walk(bridge):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            name, value = node.targets[0].attr, node.value
        elif isinstance(node, ast.keyword):
            name, value = node.arg, node.value
        else:
            continue
        if str(name).endswith("_fusion") and isinstance(value, ast.Constant) and isinstance(value.value, bool):
            found[name] = value.value
    return found


def architecture_of(model, has_experts):
    """Returns the architecture whose letters occur in the model's name, the longest of several; None if there is none.
    The end "Moe" is not part of names.
    """
    name = letters(model.rpartition("/")[2])
    fitting = [one for one in selected() if one.removesuffix("moe") in name and (has_experts or not one.endswith("moe"))]
    return max(fitting, key=len, default=None)
