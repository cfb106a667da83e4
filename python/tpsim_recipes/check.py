"""Checks the arguments of a launch file with the framework's own code, and returns the values that
the framework resolves.

A judge is a function that takes a JSON file, {"arguments": [word], "overrides": {key: value},
"environment": {name: value}, "gpu": name}, and the folders to import from. It returns {"accepted": bool,
"message", "where", "settings": {name: value}}.
"""
import argparse
import importlib
import json
import os
import pathlib
import site
import sys

from . import plain, recipe, recorders, stubs

MISSING = "the package tpsim_judges is not installed, which checks files of {}"
INSTALL = "pip install tools/tpsim_judges of tpsim's sources, or set TPSIM_JUDGES to the folder tools"


class Rejected(Exception):
    """The arguments are refused with this message."""


def raise_message(_parser, message):
    raise Rejected(message)


def where_of(error):
    """Returns the "file:line" at which code of the checkout raised the error."""
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
    except recorders.Refusal:
        raise
    except Exception as error:  # pylint: disable=broad-except
        is_terse = not str(error) or isinstance(error, (AttributeError, KeyError, TypeError))
        message = f"{type(error).__name__}: {error}" if is_terse else str(error)
        return {"accepted": False, "message": message, "where": where_of(error)}


FINDER = []
ENVIRONMENT = dict(os.environ)


def prepared(file, sources, program):
    """Prepares the process for the arguments in `file`: environment, sys.argv, and on the first
    call the import paths.
    """
    given = json.loads(file.read_text(encoding="utf-8"))
    if not FINDER:
        FINDER.append(recipe.prepare(sources))
    recorders.world["gpu"] = given.get("gpu", "h100")
    os.environ.clear()
    os.environ.update({**ENVIRONMENT, "RANK": "0", "LOCAL_RANK": "0", **given["environment"]})
    sys.argv = [program, *given.get("arguments", [])]
    return given, FINDER[0]


def require(name):
    """Refuses to judge if the checkouts lack the module, because its stub accepts everything."""
    if isinstance(importlib.import_module(name), stubs.StubModule):
        raise recorders.Refusal(f"the checkouts do not contain {name}",
                             "--check names the framework's checkout, --checkout further ones")


def answer_of(work, finder, notes=()):
    """Returns the answer of a judge whose settings `work` returns. The modules that could not be loaded are
    part of it, because they make it less reliable. `work` may add notes.
    """
    answer = judged(work)
    if finder.failed:
        answer["stubs"] = finder.failed
    if notes:
        answer["notes"] = notes
    return answer


def megatron_lm(file, sources):
    _, finder = prepared(file, sources, "pretrain_gpt.py")

    def work():
        require("megatron.training.arguments")
        from megatron.training import arguments  # pylint: disable=import-error,import-outside-toplevel
        parsed = arguments.parse_args()
        arguments.validate_args(parsed, {})
        arguments.core_transformer_config_from_args(parsed)
        return {name: plain.Walk().plain(value) for name, value in vars(parsed).items()}
    return answer_of(work, finder)


def judge_of(framework):
    """Returns the judge of a framework, and the folders of its code. All but Megatron-LM's, which imports use too, are in the
    optional package tpsim_judges: in the folder TPSIM_JUDGES or among Python's installed packages.
    """
    if framework == "megatron-lm":
        return megatron_lm, []
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    folders = [place for place in (os.environ.get("TPSIM_JUDGES", ""), *packages) if (pathlib.Path(place) / "tpsim_judges").is_dir()]
    if not folders:
        raise recorders.Refusal(MISSING.format(framework), INSTALL)
    before = list(sys.path)
    sys.path += [os.path.abspath(folders[0]), *packages]
    try:
        judges = importlib.import_module("tpsim_judges").JUDGES  # its imports too, before the file system is hidden
    except ImportError as error:
        raise recorders.Refusal(f"tpsim_judges needs the module {error.name}", INSTALL) from None
    finally:
        sys.path[:] = before
    return judges[framework], [str(pathlib.Path(folders[0]).resolve() / "tpsim_judges")]
