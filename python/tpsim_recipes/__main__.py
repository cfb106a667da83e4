"""Command line: `recipe` prints a configuration, `check` checks arguments with a framework's code, `read` prints the
contents of a snapshot or report. All print JSON.
"""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import warnings

from . import check, checkout, isolation, memory_snapshot, nsys_report, overrides, recipe, recorders, replaced

READERS = {"memory-snapshot": memory_snapshot, "nsys-report": nsys_report}


def options():
    parser = argparse.ArgumentParser(prog="tpsim_recipes", description="Run the Python code of a training framework, with stubs for missing modules.")
    parser.add_argument("--checkout", action="append", default=[], help="folder of the framework's sources; may be repeated")
    parser.add_argument("--gpu", default="h100", help="name of the GPU that is reported to configurations [h100]")
    parser.add_argument("--seconds", type=int, default=isolation.CPU_SECONDS, help="limit of CPU time in seconds")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("recipe", help="print the configuration that a recipe or script creates")
    one.add_argument("file", type=pathlib.Path)
    one.add_argument("--function", default="", help="name of the function in the file that returns the configuration")
    one.add_argument("--facts", default="{}", help="JSON object: facts of Hugging Face models, by model name")
    one.add_argument("--words", default="null", help="JSON list with the arguments of the script")
    one.add_argument("--gpus", type=int, default=1, help="number of GPUs that code finds when it asks for the world size")
    one.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="given",
                     help="an argument of the function or script; may be repeated")
    judge = commands.add_parser("check", help="check arguments with a framework's own code")
    judge.add_argument("framework")
    judge.add_argument("file", type=pathlib.Path, nargs="+",
                       help="JSON file with arguments and environment; for several files, a list of verdicts is printed")
    reader = commands.add_parser("read", help="print the contents of a file that a profiler wrote")
    reader.add_argument("reader", choices=sorted(READERS))
    reader.add_argument("file", type=pathlib.Path)
    return parser


def quiet(work):
    """Returns a function that runs `work` and drops its output, because frameworks print during import."""
    def run():
        warnings.simplefilter("ignore")
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                return work()
    return run


def run_recipe(arguments, sources):
    given = {}
    for text in arguments.given:
        name, _, value = text.partition("=")
        given[name] = overrides.value_of(value)
    recorders.world["gpus"] = arguments.gpus
    recorders.world["gpu"] = arguments.gpu
    finder = recipe.prepare(sources, json.loads(arguments.facts))
    words = json.loads(arguments.words)
    if words is not None:  # as torchrun sets them
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(arguments.gpus), LOCAL_WORLD_SIZE=str(min(8, arguments.gpus)))
    answer = refused(lambda: recipe.resolved(arguments.file, sources, arguments.function, given, words))
    answer.setdefault("tpsim_recipe", {})["stubs"] = finder.failed
    if "stated" in recorders.world:
        answer["tpsim_recipe"]["gpus"] = recorders.world["stated"]
    answer["tpsim_recipe"]["models"] = {name: sorted(fields) for name, fields in replaced.asked.items()}
    return answer


def judged_by(judge, files, sources):
    """Returns the verdict on one file, or a list of verdicts. Several files share the imports of the framework."""
    verdicts = [refused(lambda one=one: judge(one, sources)) for one in files]
    return verdicts[0] if len(verdicts) == 1 else {"verdicts": verdicts}


def read_with(reader, file):
    """Returns the contents of an untrusted file."""
    try:
        return reader.read(file)
    except recorders.Refusal:
        raise
    except ImportError as error:
        return {"error": f"needs the module {error.name}, which python3 lacks here", "hint": "install it: apt-get install python3",
                "is_missing": True}
    except Exception as error:  # pylint: disable=broad-except
        raise recorders.Refusal(f"is damaged or incomplete ({type(error).__name__}: {error})", reader.HINT) from None


def refused(work):
    """Returns the result of `work`. An exception becomes a dictionary with the keys "error" and "hint"."""
    try:
        return work()
    except recorders.Refusal as refusal:
        return {"error": str(refusal), "hint": refusal.hint, "choices": refusal.choices}
    except RecursionError:
        return {"error": "a function of the recipe calls itself without end", "hint": ""}
    except Exception as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}", "hint": place_of(error)}


def place_of(error):
    """Returns the "file:line" at which the framework's code raised the error."""
    trace, place = error.__traceback__, ""
    while trace:
        name = trace.tb_frame.f_code.co_filename
        if os.path.dirname(__file__) != os.path.dirname(name) and not name.startswith("<"):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def work_of(arguments, files):
    """Returns the function that a command runs, and the files and folders that the function may read."""
    if arguments.command == "read":
        return lambda: refused(lambda: read_with(READERS[arguments.reader], files[0])), [str(files[0])]
    named = [place for folder in arguments.checkout for place in checkout.sources_of(folder)]
    sources = list(dict.fromkeys([*named, *checkout.above(files[0])]))
    visible = [*map(str, sources), *(str(one.parent) for one in files)]
    if arguments.command == "recipe":
        return lambda: run_recipe(arguments, sources), visible
    judge, folders = check.judge_of(arguments.framework)
    return lambda: judged_by(judge, files, sources), [*visible, *folders]


def main():
    arguments = options().parse_args()
    files = [one.resolve() for one in (arguments.file if arguments.command == "check" else [arguments.file])]
    arguments.file = files[0]
    try:
        work, visible = work_of(arguments, files)
        answer = isolation.run(quiet(work), lambda: isolation.enter_file_system(visible), arguments.seconds,
                               wall=3 * arguments.seconds)
    except isolation.Failed as failed:
        answer = {"error": str(failed), "hint": ""}
    except recorders.Refusal as refusal:
        answer = {"error": str(refusal), "hint": refusal.hint}
    sys.stdout.write(json.dumps(answer) + "\n")


main()
