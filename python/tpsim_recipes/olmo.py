"""Patches of OLMo-core: its launchers return the configuration instead of training or logging in."""
import dataclasses
import sys

from .overrides import put, value_of
from .recorders import Started, world


def patch_olmo_experiment(module):
    """Patches OLMo's internal launcher so that scripts do not need a login or a cluster."""
    module.get_beaker_username = lambda: "user"

    def main(*, config_builder):
        overrides = [word for word in sys.argv[1:] if word.startswith("--")]
        places = [word for word in sys.argv[1:] if not word.startswith("--")]  # command, name, cluster
        cluster = places[2] if len(places) > 2 else "ai2/jupiter"
        context = module.CliContext(sys.argv[0], module.SubCmd.launch, "run", cluster, overrides)
        raise Started(config_builder(context), "olmo-core")
    module.main = main


def patch_olmo_script(module):
    own = module._parse_args  # pylint: disable=protected-access

    def main(config_builder, parser=None):
        sys.argv[1:1] = ["--save-folder", "/tmp"]
        raise Started(config_builder(*own(parser)), "olmo-core")
    module.main = main


def patch_olmo_config(module):
    """Replaces the merging of overrides, because OmegaConf is not installed."""
    def merge(self, dotlist, *_places, **_words):
        for word in dotlist:
            path, _, text = word.lstrip("-").partition("=")
            put(self, path, value_of(text))
        return self
    module.Config.merge = merge


def patch_olmo_world(module):
    """Makes OLMo-core find the stated number of GPUs, in nodes of eight."""
    module.get_world_size = lambda *_: world["gpus"]
    module.get_local_world_size = lambda: min(8, world["gpus"])
    module.get_num_nodes = lambda: max(1, world["gpus"] // 8)
    module.init_distributed = lambda *_places, **_words: None


def patch_olmo_model(module):
    """Stops scripts that build their model or launch themselves, and returns the configuration
    that holds the model.
    """
    module.TransformerConfig.build = lambda self, **_words: start_of_part("model", self)


def patch_olmo_launch(module):
    module.BeakerLaunchConfig.launch = lambda self, *_places, **_words: start_of_part("launch", self)


def start_of_part(name, part):
    """Raises Started with the configuration of a calling function whose field `name` is `part`."""
    frame = sys._getframe(1)  # pylint: disable=protected-access
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if dataclasses.is_dataclass(value) and hasattr(value, "train_module") and getattr(value, name, None) is part:
                raise Started(value, "olmo-core")
        frame = frame.f_back
    raise RuntimeError(f"no configuration of the calling functions has this {name}")


def patch_olmo_io(module):
    """Makes scripts that continue from a checkpoint run without the checkpoint."""
    module.dir_is_empty = lambda *_: False


def patch_olmo_git(module):
    """Older versions read the state of a git repository, which a checkout may lack."""
    if hasattr(module, "GitConfig"):
        module.GitConfig.from_env = classmethod(lambda _cls: None)


PATCHES = {"olmo_core.config": patch_olmo_config,
           "olmo_core.distributed.utils": patch_olmo_world,
           "olmo_core.io": patch_olmo_io,
           "olmo_core.launch.beaker": patch_olmo_launch,
           "olmo_core.launch.utils": patch_olmo_git,
           "olmo_core.nn.transformer.config": patch_olmo_model,
           "olmo_core.internal.experiment": patch_olmo_experiment,
           "olmo_core.script_utils": patch_olmo_script}
