"""Checks the options of a torchtitan run with torchtitan's own configuration and trainer.

The options are set on the configurations that torchtitan's registry has for the plan's model, since a launch script
leaves the choice to its user. Trainer.__init__ then runs up to the point at which it would parallelize the model.
"""
import importlib
import inspect
import os
import sys
import types

from tpsim_recipes import check, plain, recipe, recorders
from tpsim_recipes.stubs import Stub, StubModule

from . import strict_options

PLAN_MODULE = "torchtitan_plan"  # frameworks/torchtitan/plan_module.h
NAMING = {"--module", "--config"}
JUDGED = "tpsim_judged"  # name of a module that returns the configuration to set the options on
NO_MODEL = "its registry has no configuration of this model: the checks of model and stages did not run"

DEFAULT_MODEL = ("accepted with the model that model_registry(flavor) returns by default. The registry's configurations of "
                 "the model choose otherwise, and are refused: {}")


class Ended(Exception):
    """The trainer has passed its checks."""


def torchtitan(file, sources):
    given, finder = check.prepared(file, sources, "train.py")
    notes = []

    def work():
        check.require("torchtitan.trainer")
        prepare(int(os.environ.get("WORLD_SIZE", "1")))
        first = None
        found = configurations(given.get("model", {}))
        module = given.get("module", "")
        for make in found + ([] if module else [with_default_model(make) for make in found]):
            try:
                if module:
                    add_plan_module(module, make)
                settings = settings_of(checked(make, given["arguments"]), given["arguments"])
            except Exception as error:  # pylint: disable=broad-except
                first = first or error
                continue
            if first is not None and make not in found:
                notes.append(DEFAULT_MODEL.format(first))
            return settings
        if first is not None:
            raise first
        notes.append(NO_MODEL)
        # The module would change the modules of a configuration that does not exist.
        words = given["arguments"]
        options = [word for place, word in enumerate(words) if not {word, *words[max(0, place - 1):place]} & NAMING]
        return settings_of(checked(lambda: without_model(words), options), words)
    return check.answer_of(work, finder, notes)


def add_plan_module(text, make):
    """Adds the module of the script, which reads the user's --module and --config from sys.argv."""
    sys.argv[1:1] = ["--module", make.__module__.split(".")[-2], "--config", make.__name__]
    sys.modules[PLAN_MODULE] = module = types.ModuleType(PLAN_MODULE)
    exec(text, vars(module))  # pylint: disable=exec-used


def without_model(words):
    """Returns a configuration without a model. Its loss has chunks if an option states their number."""
    from torchtitan.trainer import Trainer  # pylint: disable=import-error,import-outside-toplevel
    if not any(word.startswith("--loss.num_chunks") for word in words):
        return Trainer.Config()
    from torchtitan.components.loss import ChunkedLossWrapper  # pylint: disable=import-error,import-outside-toplevel
    return Trainer.Config(loss=ChunkedLossWrapper.Config())


def prepare(gpus):
    """Sets the number of GPUs, and replaces what the trainer would start."""
    import tyro  # pylint: disable=import-error,import-outside-toplevel
    from torchtitan import trainer  # pylint: disable=import-error,import-outside-toplevel
    from torchtitan.config.configurable import Configurable  # pylint: disable=import-error,import-outside-toplevel
    from torchtitan.distributed import ParallelDims, pipeline_parallel, utils  # pylint: disable=import-error,import-outside-toplevel
    tyro.cli = strict_options.cli
    recorders.world["gpus"] = gpus
    utils.init_distributed = lambda *_places, **_words: gpus
    utils.set_determinism = lambda *_places, **_words: None
    Configurable.Config.build = lambda self, **_words: Built()
    ParallelDims.get_mesh = mesh
    pipeline_parallel._pipeline_module_split = stages_of  # pylint: disable=protected-access
    trainer.has_quantization = lambda *_: False


class Built(Stub):
    """Replaces objects that configurations build. Converters leave the model as it is: quantization needs torchao."""

    def convert(self, model):
        return model


def mesh(self, _name):
    """Replaces ParallelDims.get_mesh(): a mesh with the size of the axes that share a batch."""
    return types.SimpleNamespace(size=lambda: self.dp_replicate * self.dp_shard, get_local_rank=lambda: 0)


def stages_of(_model, _mesh, _schedule, _device, parts, **_words):
    """Replaces the cut of a model into stages: all stages are of this rank, without modules."""
    stages = int(os.environ["TPSIM_STAGES"])
    return [Stub()] * max(1, len(parts) // stages), []


def configurations(model):
    """Returns the functions of the registry whose configuration has the model's layers, width and experts."""
    wanted = tuple(model.get(key, 0) for key in ("layers", "hidden", "experts"))
    return [make for shape, make in registry() if shape == wanted]


def with_default_model(make):
    """Returns a function of the same configuration with the model that model_registry() returns by default."""
    def made():
        config = make()
        package = importlib.import_module(make.__module__.rpartition(".")[0])
        config.model_spec = package.model_registry(config.model_spec.flavor)
        return config
    return made


KNOWN = []


def registry():
    """Returns (shape, function) for all configurations that torchtitan's models have."""
    if not KNOWN:
        from torchtitan.models import _supported_models  # pylint: disable=import-error,import-outside-toplevel
        for name in sorted(_supported_models):
            module = importlib.import_module(f"torchtitan.models.{name}.config_registry")
            for make in vars(module).values():
                is_own = isinstance(make, types.FunctionType) and make.__module__ == module.__name__
                if is_own and not inspect.signature(make).parameters and recipe.makes_config(make):
                    try:
                        KNOWN.append((shape_of(make()), make))
                    except Exception:  # pylint: disable=broad-except
                        continue  # some require another GPU
    return KNOWN


def shape_of(config):
    model = config.model_spec.model
    experts = [layer.moe.num_experts for layer in model.layers if getattr(layer, "moe", None) is not None]
    return len(model.layers), model.dim, max(experts, default=0)


def checked(make, words):
    """Returns the configuration with the options. Raises the error of torchtitan's parser or trainer."""
    from torchtitan.config.manager import ConfigManager  # pylint: disable=import-error,import-outside-toplevel
    sys.modules[JUDGED] = sys.modules[f"{JUDGED}.config_registry"] = module = StubModule(JUDGED)
    module.__path__, module.judged = [], make
    config = ConfigManager().parse_args(["--module", JUDGED, "--config", "judged", *words])
    return trained(config)


def trained(config):
    from torchtitan.trainer import Trainer  # pylint: disable=import-error,import-outside-toplevel
    os.environ["TPSIM_STAGES"] = str(config.parallelism.pipeline_parallel_degree)
    trainer = object.__new__(Trainer)
    if config.model_spec is None:
        trainer.config = config
        Trainer.init_distributed(trainer)
        return config
    config.model_spec.parallelize_fn = end
    if config.model_spec.pipelining_fn is not None:
        config.model_spec.pipelining_fn = ending(config.model_spec.pipelining_fn)
    type(config.model_spec.model).get_nparams_and_flops = lambda *_places: (1, 1)
    try:
        Trainer.__init__.__wrapped__(trainer, config)
    except Ended:
        pass
    return config


def end(*_places, **_words):
    raise Ended


def ending(cut):
    """Returns a function that cuts the model into stages and then ends."""
    def run(*places, **words):
        cut(*places, **words)
        raise Ended
    return run


def settings_of(config, words):
    """Returns the values of the options. The key of a switch --a.no-b is true if a.b is false."""
    settings = {}
    for place, word in enumerate(words):
        path = word.partition("=")[0][2:].replace("-", "_")
        owner, _, last = path.rpartition(".")
        if not word.startswith("--"):
            name, colon, _ = word.replace("-", "_").partition(":")
            if colon and hasattr(config, name):
                settings[name] = strict_options.variant_of(config, name)
            continue
        if word in NAMING:
            settings[path] = words[place + 1]
            continue
        try:
            settings[path] = plain.Walk().plain(value_at(config, path))
        except AttributeError:
            settings[path] = not value_at(config, f"{owner}.{last[len('no_'):]}")
    return settings


def value_at(owner, path):
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner
