"""Checks overrides of Megatron-Bridge: applies them to the configuration from which all pre-training recipes start."""
import importlib

from tpsim_recipes import plain
from tpsim_recipes.check import Rejected, answer_of, prepared, require


def value_at(owner, key):
    for name in key.split("."):
        owner = getattr(owner, name)
    if key == "model.activation_func":
        from megatron.bridge.utils.activation_map import callable_to_str  # pylint: disable=import-error,import-outside-toplevel
        owner = callable_to_str(owner) or owner
    return plain.Walk().plain(owner)


def grouped(overrides):
    """Returns the overrides. Elements of a list ("model.recompute_modules.0") are joined under one key."""
    joined = {}
    for key, value in overrides.items():
        name, _, index = key.rpartition(".")
        if index.isdigit():
            joined.setdefault(name, []).append(value)
        else:
            joined[key] = value
    return joined


def provider_of(overrides):
    """Returns the class of Megatron-Bridge that has the model settings of these overrides."""
    if "model.hybrid_layer_pattern" in overrides:
        from megatron.bridge.models.hybrid.hybrid_provider import HybridModelProvider as Provider  # pylint: disable=import-error,import-outside-toplevel
    elif overrides.get("model.multi_latent_attention"):
        from megatron.bridge.models.mla_provider import MLAModelProvider as Provider  # pylint: disable=import-error,import-outside-toplevel
    else:
        from megatron.bridge.models.gpt_provider import GPTModelProvider as Provider  # pylint: disable=import-error,import-outside-toplevel
    return Provider


TARGET = "_target_"  # names the class or object of a section, as in OmegaConf


def created(section, prefix):
    """Returns the object that a section with a `_target_` describes, as instantiate() of Megatron-Bridge does.

    `section` maps keys below the prefix, with dots, to values.
    """
    module, _, name = section[TARGET].rpartition(".")
    target = getattr(importlib.import_module(module), name)
    if section.get("_call_") is False:
        return target
    fields = {}
    for key, value in section.items():
        name, _, rest = key.partition(".")
        if rest == TARGET:
            inner = {one[len(name) + 1:]: other for one, other in section.items() if one.startswith(name + ".")}
            fields[name] = created(inner, f"{prefix}.{name}")
        elif not rest and name != TARGET:
            fields[name] = value
    unknown = [name for name in fields if not hasattr(target, name)]
    if unknown:
        raise Rejected(f"{prefix}.{unknown[0]} is not a setting")
    return target(**fields)


def with_sections(config, overrides):
    """Sets the sections that describe an object. Returns the other overrides."""
    sections = [key.partition(".")[0] for key in overrides if key.count(".") == 1 and key.endswith("." + TARGET)]
    for section in sections:
        setattr(config, section, created({key[len(section) + 1:]: value for key, value in overrides.items()
                                          if key.startswith(section + ".")}, section))
    return {key: value for key, value in overrides.items() if key.partition(".")[0] not in sections}


def override(config, key, value):
    """Sets one setting like apply_overrides() of Megatron-Bridge. Raises Rejected if a section is missing."""
    from megatron.bridge.utils.activation_map import str_to_dtype  # pylint: disable=import-error,import-outside-toplevel
    *sections, name = key.split(".")
    owner = config
    for section in sections:
        if getattr(owner, section, None) is None:
            raise Rejected(f"the configuration has no section {section}")
        owner = getattr(owner, section)
    if not hasattr(owner, name):
        raise Rejected(f"{key} is not a setting")
    setattr(owner, name, str_to_dtype(value) if name.endswith("_dtype") and isinstance(value, str) else value)


def megatron_bridge(file, sources):
    given, finder = prepared(file, sources, "pretrain.py")

    def work():
        require("megatron.bridge.training.config")
        require("megatron.core")
        from megatron.bridge.recipes.common import _pretrain_common  # pylint: disable=import-error,import-outside-toplevel
        from megatron.bridge.training.comm_overlap import CommOverlapConfig  # pylint: disable=import-error,import-outside-toplevel
        from megatron.bridge.training.config import runtime_config_update  # pylint: disable=import-error,import-outside-toplevel
        config = _pretrain_common()
        overrides = grouped(given["overrides"])
        shape = {**given.get("model", {}), **{key.partition(".")[2]: value for key, value in overrides.items()
                                              if key.startswith("model.")}}
        config.model = provider_of(overrides)(**{name: shape[name] for name in SHAPE if name in shape})
        if any(key.startswith("comm_overlap.") for key in overrides) and config.comm_overlap is None:
            config.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)
        for key, value in with_sections(config, overrides).items():
            override(config, key, value)
        config.dataset.seq_length = config.model.seq_length  # exported files do not state the data
        runtime_config_update(config)
        return {key: value_at(config, key) for key in overrides if not key.endswith(("." + TARGET, "._call_"))}
    return answer_of(work, finder)


# Fields of a model provider that a recipe sets when it creates the provider. Other fields are
# overrides.
SHAPE = ("num_layers", "hidden_size", "num_attention_heads", "num_moe_experts", "moe_router_topk", "num_query_groups",
         "kv_channels", "hybrid_layer_pattern", "mtp_num_layers", "add_bias_linear")
