"""Runs a recipe or a script, and returns the configuration that it creates."""
import argparse
import dataclasses
import errno
import importlib
import inspect
import os
import re
import runpy
import sys
import types

from . import checkout, plain, recorders, replaced, stubs

# Names of functions that are recipes if they do not require arguments.
RECIPE = re.compile(r"(?!_)(.*_)?(config|recipe)(_.*)?")
USUAL = ("pretrain_recipe", "pretrain_config")


def prepare(sources, facts=None):
    """Makes `sources` importable, with stubs for missing modules. Returns the finder."""
    sys.path[:0] = [str(source) for source in sources]
    sys.dont_write_bytecode = True
    known = {} if facts is None else facts
    finder = stubs.install(replaced.modules(lambda name: known.get(name, {})))
    own = stubs.Forgiving.exec_module

    def exec_module(self, module):
        own(self, module)
        replaced.patch(module)
    stubs.Forgiving.exec_module = exec_module
    answer_versions()
    ignore_new_folders()
    return finder


def ignore_new_folders():
    """Makes os.mkdir, which os.makedirs and Path.mkdir call, have no effect where a recipe cannot write."""
    own = os.mkdir

    def mkdir(*places, **words):
        try:
            own(*places, **words)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT):
                raise
    os.mkdir = mkdir


def answer_versions():
    """Makes importlib.metadata report a version that passes all checks, for packages that are not installed."""
    import importlib.metadata as metadata  # pylint: disable=import-outside-toplevel
    own = metadata.version

    def version(name):
        try:
            return own(name)
        except metadata.PackageNotFoundError:
            return stubs.VERSION
    metadata.version = version


def load(path, sources):
    """Loads the file as a module. A file of a package is loaded under its dotted name."""
    name = checkout.module_name(path, sources)
    if name:
        module = importlib.import_module(name)
    else:
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location("recipe", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["recipe"] = module
        spec.loader.exec_module(module)
    if isinstance(module, stubs.StubModule):
        raise recorders.Refusal("cannot be loaded as a Python module", "")
    return module


def functions_in(module, sources):
    """Returns the functions that the module defines. For a package, also functions imported from its modules."""
    named = {}
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", None) == module.__name__
        is_package = hasattr(module, "__path__") and str(getattr(value, "__module__", "")).startswith(module.__name__)
        if isinstance(value, types.FunctionType) and (is_own or is_package):
            named[name] = value
    return named


def is_recipe(name, function):
    return RECIPE.fullmatch(name) is not None and not needed_by(function)


def needed_by(function):
    return [one.name for one in inspect.signature(function).parameters.values()
            if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


def makes_config(function):
    """Whether the function returns a configuration, by its return annotation, as in torchtitan's registries."""
    made = function.__annotations__.get("return")
    return str(getattr(made, "__qualname__", made)).endswith("Config")


def call(name, function, given):
    parameters = inspect.signature(function).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    for key in given:
        if key not in parameters and not takes_any:
            raise recorders.Refusal(f"{name}() has no parameter '{key}'", "its parameters: " + (", ".join(parameters) or "none"))
    missing = [one for one in needed_by(function) if one not in given]
    if missing:
        raise recorders.Refusal(f"{name}() needs {', '.join(missing)}", "add --set " + ",".join(f"{one}=VALUE" for one in missing))
    try:
        return function(**given)
    except recorders.Started as started:
        return started.config


def from_function(path, sources, asked, given):
    module = load(path, sources)
    functions = functions_in(module, sources)
    if asked:
        if asked not in functions:
            raise recorders.Refusal(f"has no function '{asked}'" + ("; its functions:" if functions else ""), "", sorted(functions))
        return asked, call(asked, functions[asked], given)
    for usual in USUAL:
        if usual in functions:
            return usual, call(usual, functions[usual], given)
    names = [name for name, one in functions.items()
             if (is_recipe(name, one) or makes_config(one)) and not name.startswith("_")]
    if len(names) == 1:
        return names[0], call(names[0], functions[names[0]], given)
    if not names:
        raise recorders.Refusal("has no function that returns a configuration", "import the YAML file that it writes, "
                      "or the log of a run, which lists the arguments")
    raise recorders.Refusal("contains several recipes:", "", names)


def said_by_argparse():
    """Makes argparse raise its message, which names missing arguments, instead of exiting."""
    def error(_parser, message):
        raise recorders.Refusal(f"refuses the arguments: {message}", "check them; --set '@=ARGUMENTS' gives all arguments of a Python script")
    argparse.ArgumentParser.error = error


def from_script(path, words):
    """Runs the file as a program until training starts, and returns the recorded start. None if
    training does not start.
    """
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path), *words]
    said_by_argparse()
    try:
        runpy.run_path(str(path), run_name="__main__")
    except recorders.Started as started:
        return started
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise recorders.Refusal(f"exited with code {ended.code}",
                          "check the arguments; --set '@=ARGUMENTS' gives all arguments of a Python script") from None
    return None


def is_script(text):
    return re.search(r"^if __name__\s*==", text, re.M) is not None


def resolved(path, sources, asked, given, words=None):
    """Returns the configuration as plain data. The key "tpsim_recipe" has its origin, and the
    fields that have their class's default. `words` are the arguments of a script.
    """
    framework, function, config = checkout.framework_of(sources), asked, None
    text = path.read_text(encoding="utf-8")
    name = checkout.module_name(path, sources)
    if words is not None or not asked and (is_script(text) or not name):
        script = from_script(path, [*(words or ()), *(f"--{key}={value}" for key, value in given.items())])
        if script is not None:
            framework, config = script.framework, script.config
    if config is None and words is not None:
        raise recorders.Refusal("does not start a training with these arguments", "check the script's arguments")
    if config is None:
        function, config = from_function(path, sources, asked, given)
    if not dataclasses.is_dataclass(config) and not isinstance(config, (recorders.Recorder, dict)):
        raise recorders.Refusal(f"{function or 'the script'} does not return a configuration", "name a function with --set recipe=NAME")
    walk = plain.Walk()
    made = walk.plain(config)
    framework = checkout.framework_of_target(str(made.get(plain.MADE_BY, ""))) or framework
    return {"tpsim_recipe": {"function": function, "framework": framework, "defaults": walk.defaults}, **made}
