"""Replacements for modules and functions. Other code of a framework runs unchanged, or is a stub.

`modules()` replaces whole modules that are not needed or not installed. `patch()` replaces
functions that would start training, in modules of the checkout.
"""
import dataclasses
import enum
import importlib
import sys
import types

from . import bridges, nemo_run, olmo, pydantic_models, recorders
from .overrides import overridden
from .plain import name_of
from .recorders import Recorder, Started
from .stubs import Stub, StubMeta, StubModule

# Compute capability by a part of the GPU's name, for recipes that query the device.
CAPABILITIES = {"a100": (8, 0), "h100": (9, 0), "h200": (9, 0), "b200": (10, 0), "gb200": (10, 0), "b300": (10, 3),
                "gb300": (10, 3), "rtx": (12, 0)}


def capability_of(gpu):
    for name, capability in sorted(CAPABILITIES.items(), key=lambda row: -len(row[0])):
        if name in gpu.lower():
            return capability
    return CAPABILITIES["h100"]


# torch

def device_properties(*_):
    major, minor = capability_of(recorders.world["gpu"])
    return types.SimpleNamespace(name=f"NVIDIA {recorders.world['gpu'].upper()}", major=major, minor=minor)


def fill_torch(module):
    module.cuda = submodule("torch.cuda")
    module.cuda.get_device_capability = lambda *_: capability_of(recorders.world["gpu"])
    module.cuda.get_device_name = lambda *_: recorders.world["gpu"]
    module.cuda.get_device_properties = device_properties
    module.cuda.is_available = lambda: True
    module.cuda.device_count = lambda: 8
    module.distributed = submodule("torch.distributed")
    module.distributed.is_initialized = lambda: False
    module.distributed.is_available = lambda: False
    module.distributed.get_world_size = lambda *_: recorders.world["gpus"]
    module.distributed.get_rank = lambda *_: 0
    module.version = submodule("torch.version")
    module.version.hip = None
    module.version.cuda = "99.0"
    module.library = submodule("torch.library")
    module.library.custom_op = lambda *_places, **_words: lambda _function: Stub()
    module.is_tensor = lambda _value: False


def fill_optimizers(module):
    """Fills Transformer Engine's optimizers, whose arguments Megatron-Core looks up."""
    class FusedAdam:
        """Adam with moments and master weights of chosen dtypes."""

        def __init__(self, params, lr=1e-3, *, master_weight_dtype=None, exp_avg_dtype=None, exp_avg_sq_dtype=None,
                     use_decoupled_grad=False, **_words):
            self.given = (params, lr, master_weight_dtype, exp_avg_dtype, exp_avg_sq_dtype, use_decoupled_grad)
    module.FusedAdam = FusedAdam


@dataclasses.dataclass(frozen=True)
class Shard:
    """Placement: a dimension of the tensor is sharded over a mesh axis. Configurations compare placements."""
    dim: int = 0


@dataclasses.dataclass(frozen=True)
class Replicate:
    """Placement: every rank of a mesh axis has the whole tensor."""


@dataclasses.dataclass(frozen=True)
class Partial:
    """Placement: the tensor is the sum of the ranks' values over a mesh axis."""
    reduce_op: str = "sum"


def fill_placements(module):
    module.Shard, module.Replicate, module.Partial = Shard, Replicate, Partial


# Enumerations of PyTorch, whose members configurations name or number from 1.
ENUMERATIONS = {"BackwardPrefetch": "BACKWARD_PRE BACKWARD_POST",
                "ShardingStrategy": "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2",
                "StateDictType": "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT"}


@dataclasses.dataclass
class CPUOffload:
    """FSDP's setting of parameters in host memory."""
    offload_params: bool = False


def fill_fsdp(module):
    module.CPUOffload = CPUOffload
    module.OffloadPolicy = type("OffloadPolicy", (Stub,), {"_tpsim_stub": True})
    module.CPUOffloadPolicy = type("CPUOffloadPolicy", (module.OffloadPolicy,), {"_tpsim_stub": True})
    for name, members in ENUMERATIONS.items():
        setattr(module, name, enum.Enum(name, members))


# PyTorch's pipeline schedules by whether a rank has one stage. Configurations name them.
SCHEDULES = {"PipelineScheduleSingle": ("1F1B", "GPipe"),
             "PipelineScheduleMulti": ("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")}


def fill_schedules(module):
    """Fills torch.distributed.pipelining.schedules with classes that have PyTorch's names and bases."""
    known = {}
    for base, names in SCHEDULES.items():
        known[base] = type(base, (Stub,), {"_tpsim_stub": True})
        for name in names:
            known[name] = type(f"Schedule{name}", (known[base],), {"_tpsim_stub": True})
    for one in known.values():
        setattr(module, one.__name__, one)
    module._PipelineScheduleRuntime = known["PipelineScheduleMulti"]

    def get_schedule_class(name):
        by_lower_case = {key.lower(): one for key, one in known.items()}
        if name.lower() not in by_lower_case:
            raise ValueError(f"unknown pipeline schedule {name}; the schedules are {', '.join(known)}")
        return by_lower_case[name.lower()]
    module.get_schedule_class = get_schedule_class


def submodule(name):
    if name not in sys.modules:
        sys.modules[name] = StubModule(name)
        sys.modules[name].__path__ = []
    return sys.modules[name]


# Megatron-Bridge

class Bridge:
    """Replaces AutoBridge for a Hugging Face model. Its configuration comes from tpsim's catalogue."""

    def __init__(self, name, facts):
        self.name = str(name)
        self.facts = facts
        self.hf_pretrained = types.SimpleNamespace(config=None)

    def provider(self, class_name="megatron.bridge.models.gpt_provider.GPTModelProvider"):
        module, _, name = class_name.rpartition(".")
        return hub_provider(getattr(importlib.import_module(module), name), self.name, self.facts)

    def to_megatron_provider(self, *_places, **_words):
        return self.provider()

    def __getattr__(self, name):
        if not name.startswith("to_"):
            raise AttributeError(name)
        return self.to_megatron_provider

    def get_model_config(self):
        return self.provider("megatron.bridge.models.gpt.model_config.GPTModelConfig") if has_class(
            "megatron.bridge.models.gpt.model_config", "GPTModelConfig") else self.provider()


def has_class(module, name):
    try:
        return isinstance(getattr(importlib.import_module(module), name), type)
    except ImportError:
        return False


# Fields that describe the model. If code reads one that has not been set, `asked` records the
# field.
OF_THE_MODEL = {"num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "vocab_size",
                "num_moe_experts", "moe_ffn_hidden_size", "moe_router_topk", "mtp_num_layers", "seq_length"}
asked = {}  # by model name: the fields that were read


def hub_provider(owner, hub, facts):
    """Returns an instance of the class `owner` without calling __init__. Fields of the model come
    from `facts`, other fields have the class's defaults. Values that the recipe sets are kept.
    """
    asked.setdefault(hub, set())

    class HubModel(owner):  # pylint: disable=too-few-public-methods
        def __getattribute__(self, name):
            if name in OF_THE_MODEL and name not in object.__getattribute__(self, "__dict__"):
                asked[hub].add(name)
            return super().__getattribute__(name)

        def __getattr__(self, name):
            if name.startswith("__") or name not in others:
                raise AttributeError(name)
            return others[name]

        def __setattr__(self, name, value):
            self.__dict__[name] = value

    HubModel.__qualname__, HubModel.__module__ = owner.__qualname__, owner.__module__
    others = mla_defaults()
    for field in getattr(owner, "__dataclass_fields__", {}).values():
        if field.default_factory is not dataclasses.MISSING and not hasattr(owner, field.name):
            others[field.name] = field.default_factory()
        elif field.default is dataclasses.MISSING:
            others[field.name] = None
    made = object.__new__(HubModel)
    made.__dict__["_tpsim_model"] = hub
    made.__dict__.update(chosen_by_bridge(owner, hub, facts))
    made.__dict__.update(facts)
    return made


def chosen_by_bridge(owner, hub, facts):
    """Returns the fields that differ from Megatron-Core's defaults although no recipe sets them: a default of the
    provider's class that a base class hides, and fused kernels of the model's bridge.
    """
    chosen = {field.name: field.default_factory() for field in getattr(owner, "__dataclass_fields__", {}).values()
              if field.default_factory is not dataclasses.MISSING and hasattr(owner, field.name)}
    dense, sparse = (bridges.architecture_of(hub, has_experts) for has_experts in (False, True))
    if dense != sparse and "num_moe_experts" not in facts:
        asked[hub].add("num_moe_experts")
    return {**chosen, **bridges.selected().get(sparse if facts.get("num_moe_experts") else dense, {})}


def mla_defaults():
    """Returns the default fields of Megatron's MLA configuration, which a provider of an MLA model also has."""
    try:
        module = importlib.import_module("megatron.core.transformer.transformer_config")
        own = module.MLATransformerConfig.__dataclass_fields__.values()
    except (ImportError, AttributeError):
        return {}
    return {one.name: one.default for one in own if one.default is not dataclasses.MISSING}


def fill_auto_bridge(module, facts_of):
    def from_hf_pretrained(_cls, path, **_words):
        return Bridge(path, facts_of(str(path)))

    def from_hf_config(_cls, config, **_words):
        name = getattr(config, "_tpsim_model", "") or getattr(config, "name_or_path", "")
        return Bridge(name, facts_of(str(name)))

    module.AutoBridge = type("AutoBridge", (), {
        "from_hf_pretrained": classmethod(from_hf_pretrained), "from_hf_config": classmethod(from_hf_config),
        "__module__": module.__name__})


def fill_transformers(module):
    module.AutoConfig.from_pretrained = lambda path, **_words: HubConfig(str(path))


def fill_tyro(module):
    """Replaces tyro's command line, with which torchtitan overrides the configuration of its registry."""
    def cli(_made_by, *_places, args=(), default=None, **_words):
        return overridden(default, list(args))
    module.cli = cli


def fill_wrapt(module):
    """Fills the module wrapt: decorators return the decorated function unchanged."""
    def plain_decorator(*places, **_words):
        return places[-1] if places else lambda decorated: decorated

    def decorator(wrapper=None, **_words):
        return plain_decorator if wrapper else lambda _wrapper: plain_decorator
    module.decorator = decorator


def refuse_adapters(*_places, **_words):
    raise recorders.Refusal("trains adapters, which are not modelled", "the plan of full fine-tuning is an upper bound for time and memory")


def fill_peft(module):
    module.get_peft_model = module.LoraConfig = refuse_adapters


def fill_unsloth(module):
    class FastModel:
        """Replaces the loader of models: returns a model and a tokenizer."""

        get_peft_model = staticmethod(refuse_adapters)

        @staticmethod
        def from_pretrained(*_places, **_words):
            return Stub(), Stub()
    module.FastModel = module.FastLanguageModel = module.FastVisionModel = FastModel


def fill_dataclass_extensions(module):
    class Registrable:
        """Replaces a class that registers its subclasses by name. Registration has no effect."""

        @classmethod
        def register(cls, _name=None, **_words):
            return lambda decorated: decorated

        @classmethod
        def get_registered_name(cls, **_words):
            return None
    module.Registrable = Registrable


class HubConfig:
    """A Hugging Face configuration of which only the name is known."""

    def __init__(self, name):
        self.__dict__["_tpsim_model"] = name
        self.__dict__["name_or_path"] = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return HubConfig(self._tpsim_model) if name.endswith("_config") else None


# Functions and methods that start training, by module: name, parameter with the configuration,
# framework.
STARTS = {
    "megatron.bridge.training.pretrain": [("pretrain", "config", "megatron-bridge")],
    "megatron.bridge.training.finetune": [("finetune", "config", "megatron-bridge")],
    "torchtitan.trainer": [("Trainer.__init__", "config", "torchtitan")],
}
TRAINERS = {"nemo.collections.llm.api": ("pretrain", "finetune", "train")}


def starter(argument, framework):
    def start(*places, **words):
        given = words.get(argument, next((one for one in places if dataclasses.is_dataclass(one)), None))
        raise Started(given, framework)
    return start


def patch(module):
    """Replaces the functions that start training in a module of the checkout that has just been loaded."""
    if module.__name__ in olmo.PATCHES:
        olmo.PATCHES[module.__name__](module)
    for path, argument, framework in STARTS.get(module.__name__, ()):
        owner, _, name = path.rpartition(".")
        place = getattr(module, owner) if owner else module
        is_stub = isinstance(place, StubMeta) and "_tpsim_stub" in place.__dict__
        if not is_stub and hasattr(place, name):
            start = starter(argument, framework)
            start.__wrapped__ = getattr(place, name)
            setattr(place, name, start)
    for name in TRAINERS.get(module.__name__, ()):
        own = getattr(module, name, None)
        if isinstance(own, types.FunctionType):
            setattr(module, name, recorded_start(own))


def recorded_start(own):
    """Returns a replacement for a function that trains with given parts: model, data, trainer,
    strategy. It raises Started.
    """
    def start(*places, **words):
        words.update(dict(zip(own.__code__.co_varnames, places)))
        raise Started(Recorder(name_of(own), own, words), "nemo")
    start.__signature__ = __import__("inspect").signature(own)
    start.__module__, start.__qualname__ = own.__module__, own.__qualname__
    return start


def modules(facts_of):
    """Returns the functions that fill replaced modules, by module name."""
    return {"torch": fill_torch,
            "torch.distributed.fsdp": fill_fsdp,
            "torch.distributed.fsdp.fully_sharded_data_parallel": fill_fsdp,
            "torch.distributed.pipelining.schedules": fill_schedules,
            "torch.distributed.tensor": fill_placements,
            "torch.distributed.tensor.placement_types": fill_placements,
            "transformer_engine.pytorch.optimizers": fill_optimizers,
            "nemo_run": nemo_run.fill,
            "nemo_run.config": nemo_run.fill_config,
            "pydantic": pydantic_models.fill,
            "transformers": fill_transformers,
            "tyro": fill_tyro,
            "wrapt": fill_wrapt,
            "peft": fill_peft,
            "unsloth": fill_unsloth,
            "dataclass_extensions": fill_dataclass_extensions,
            "megatron.bridge.models.conversion.auto_bridge": lambda module: fill_auto_bridge(module, facts_of)}
