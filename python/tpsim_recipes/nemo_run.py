"""Replaces nemo_run. Configurations are recorded, and scripts run in this process."""
import os
import pathlib
import runpy
import sys
import types

from .plain import name_of
from .recorders import Recorder, Started, defaults_of, world
from .stubs import Stub


class Made(Recorder):
    """Replaces run.Config and run.Partial: a class or function with its arguments, which is not called."""

    def __init__(self, made_by, *places, **words):
        if isinstance(made_by, Recorder):
            words = {**made_by.fields(), **words}
            made_by = made_by.__dict__["_made_by"]
        words.update(dict(zip(defaults_of(made_by), places)))
        super().__init__(name_of(made_by), made_by, words)

    def __class_getitem__(cls, _key):
        return cls


class Script:
    """Replaces run.Script: a Python program with its arguments."""

    def __init__(self, path="", args=(), **_words):
        self.path, self.args = path, list(args)

    def to_command(self, *_places, **_words):
        return ["python", self.path, *self.args]


def run_program(path, words):
    """Runs a Python program as __main__. A path in a container, which does not exist here, stands for the file of
    that name next to the running program.
    """
    file = pathlib.Path(path)
    if not file.is_file():
        file = pathlib.Path(sys.argv[0]).resolve().parent / file.name
    sys.argv = [str(file), *words]
    runpy.run_path(str(file), run_name="__main__")
    sys.exit(0)


def execute(_file, words, *_environment):
    """Replaces os.execv and similar functions."""
    run_program(words[1], words[2:])


def start(task, *_places, **_words):
    if isinstance(task, Script):
        run_program(task.path, task.args)
    raise Started(task, "nemo")


class Executor(Stub):
    """Replaces run.SlurmExecutor and others: it states the number of GPUs, as nodes and tasks per node."""

    def __init__(self, *_places, **words):
        nodes, tasks = words.get("nodes", words.get("num_nodes", 1)), words.get("ntasks_per_node", words.get("gpus_per_node"))
        if isinstance(nodes, int) and isinstance(tasks, int):
            world["gpus"] = world["stated"] = nodes * tasks
            os.environ.update(WORLD_SIZE=str(world["gpus"]), LOCAL_WORLD_SIZE=str(tasks))


class Experiment:
    def __init__(self, *_places, **_words):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False

    def add(self, task, *_places, **_words):
        for one in task if isinstance(task, (list, tuple)) else [task]:
            if isinstance(one, (Recorder, Script)):
                start(one)

    def __getattr__(self, _name):
        return lambda *places, **words: None


def decorator(*places, **_words):
    is_plain = len(places) == 1 and callable(places[0]) and not isinstance(places[0], Recorder)
    return places[0] if is_plain else lambda decorated: decorated


def run_factory(function, default_factory=None, **_words):
    if default_factory is not None:
        raise Started(default_factory(), "nemo")
    function()


def fill(module):
    module.Config, module.Partial, module.Experiment, module.run = Made, Made, Experiment, start
    module.Script, module.autoconvert = Script, decorator
    module.SlurmExecutor = module.LocalExecutor = module.KubeflowExecutor = Executor
    module.cli = types.SimpleNamespace(factory=decorator, entrypoint=decorator, main=run_factory)
    module.cli.resolve_factory = lambda *_: None
    os.execv = os.execve = os.execvp = os.execvpe = execute


def fill_config(module):
    module.get_nemorun_home = lambda: "/nemo_run"
