#!/usr/bin/env python3
"""Counts how many recipes of a framework `tpsim import` can read, for docs/validation/imports.md.

    tools/import_recipes.py --program build/release/tpsim --checkout ~/Megatron-Bridge --checkout ~/Megatron-LM
        perf_recipes

Sets of recipes: perf_recipes and recipes (Megatron-Bridge), registry (torchtitan), nemo (NeMo 2).
All functions of a set run in one process, as in `tpsim_recipes`. The program imports each resulting
configuration. The set olmo (OLMo-core) has scripts: `tpsim import --run` runs each of them.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from tpsim_recipes import checkout, recipe, replaced  # pylint: disable=wrong-import-position

SETS = {"perf_recipes": ("megatron/bridge/perf_recipes", "*.py", r"(?!_).*_config"),
        "recipes": ("megatron/bridge/recipes", "*.py", r"(?!_).*_config"),
        "registry": ("torchtitan", "config_registry.py", r"(?!_).*"),
        "nemo": ("nemo/collections/llm/recipes", "*.py", r"pretrain_recipe|finetune_recipe")}
# Folders with the scripts of a set, a pattern that training scripts have in their text, and the
# arguments to try until a script takes them.
SCRIPTS = {"olmo": (("scripts/train", "scripts/official", "examples"),
                    r"TrainModule|olmo_core\.internal\.(?:experiment|ladder|cookbook)",
                    ("run", "run --checkpoint=/checkpoint", "train run", "train run ai2/jupiter",
                     "train run /checkpoint ai2/jupiter --dataset_path=/data", "train /checkpoint 1e9 ai2/jupiter"))}
# Errors that name the missing model or mechanism. They are counted separately.
NAMED = re.compile(r"do(?:es)? not (?:divide|fill|fit|model)|cannot be divided|needs --|not modelled|does not have flavor|not in the catalogue|catalogue (?:lacks|has no model)|changes the plan|"
                   r"not divisible|cannot read|tpsim cannot|tpsim models|trains adapters|no (?:model|GPU)|cannot be planned")


def functions_of(name, sources):
    """Yields (file, function, value) for each recipe of the set that has no required arguments.
    If a file fails to load, yields its error."""
    folder, files, pattern = SETS[name]
    for source in sources:
        for path in sorted((source / folder).rglob(files)):
            if path.name == "__init__.py":
                continue
            try:
                module = recipe.load(path, sources)
            except Exception as error:  # pylint: disable=broad-except
                yield path, "", error
                continue
            for function, value in recipe.functions_in(module, sources).items():
                if re.fullmatch(pattern, function) and not recipe.needed_by(value):
                    yield path, function, value


def configuration(path, function, sources):
    """Returns the configuration of a recipe as data, or {"error": text}."""
    replaced.asked.clear()
    try:
        return recipe.resolved(path, sources, function, {})
    except Exception as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}"}


class Facts(dict):
    """Catalogue values of models by their names on the hub, in the form that `tpsim import
    --run` passes."""

    def __init__(self, program):
        super().__init__()
        self.program = program

    def get(self, name, default=None):
        if name not in self:
            self[name] = self.asked(name)
        return self[name]

    def asked(self, name):
        plan = {"tpsim_recipe": {"framework": "megatron-bridge"}, "model": {"hf_model_id": name, "seq_length": 4096},
                "train": {"micro_batch_size": 1, "global_batch_size": 1}, "mixed_precision": {"bf16": True}}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model.json"
            file.write_text(json.dumps(plan), encoding="utf-8")
            run = subprocess.run([self.program, "import", str(file), "--gpus", "1", "--json", "--quiet"],
                                 capture_output=True, text=True, check=False)
        if run.returncode:
            return {}
        model = json.loads(run.stdout)["model"]
        facts = {"num_layers": model["layers"], "hidden_size": model["hidden"], "vocab_size": model["vocab"],
                 "num_attention_heads": model["attention"]["heads"], "seq_length": model["seq"]}
        if "experts" in model:
            facts.update(num_moe_experts=model["experts"]["count"], moe_router_topk=model["experts"]["per_token"])
        return facts


def imported(program, words):
    run = subprocess.run([program, "import", *words, "--json", "--quiet"], capture_output=True, text=True, check=False)
    return "" if run.returncode == 0 else run.stderr.strip().replace("\n", " ") or f"code {run.returncode}"


def answer_for_script(arguments, path, tries):
    """Returns an empty text if the import of the script gives a plan, else the error."""
    more = ["--run", "--checkout", ",".join(arguments.checkout), *(word for text in arguments.more for word in text.split())]
    answer, words = imported(arguments.program, [str(path), *more]), []
    for text in tries:
        if re.search("refuses the arguments|exited with code|is not a setting|could not convert", answer):
            words = ["--set", f"@={text}"]
            answer = imported(arguments.program, [str(path), *more, *words])
    if arguments.gpus and re.search("--gpus N", answer):
        answer = imported(arguments.program, [str(path), *more, *words, "--gpus", str(arguments.gpus)])
        if "is not divisible by dp" in answer:  # a small batch
            answer = imported(arguments.program, [str(path), *more, *words, "--gpus", "8"])
    return answer


def answers_of_scripts(arguments, sources):
    """Returns (path, "", answer) for each training script of the set."""
    folders, pattern, tries = SCRIPTS[arguments.set]
    paths = [path for source in sources for folder in folders for path in sorted((source / folder).rglob("*.py"))]
    return [(path, "", answer_for_script(arguments, path, tries)) for path in paths
            if re.search(arguments.only, str(path)) and re.search(pattern, path.read_text(encoding="utf-8"))]


def answer_for(arguments, path, function, sources, folder, facts):  # pylint: disable=too-many-arguments
    """Returns an empty text if the import gives a plan, else the error."""
    found = configuration(path, function, sources)
    more = [word for text in arguments.more for word in text.split()]
    if "error" in found:
        models = [name for name in replaced.asked if not facts.get(name)]
        return found["error"] + (f"; the catalogue lacks {', '.join(models)}" if models else "")
    file = pathlib.Path(folder) / "recipe.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    answer = imported(arguments.program, [str(file), *more])
    if arguments.gpus and "how many GPUs" in answer:
        answer = imported(arguments.program, [str(file), *more, "--gpus", str(arguments.gpus)])
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--program", default="build/release/tpsim")
    parser.add_argument("--checkout", action="append", required=True)
    parser.add_argument("--gpus", type=int, default=0, help="of recipes that state none")
    parser.add_argument("--gpu", default="", help="that recipes find [h100]")
    parser.add_argument("--more", action="append", default=[], help="options of every import")
    parser.add_argument("--only", default="", help="functions of this pattern")
    parser.add_argument("set", choices=[*SETS, *SCRIPTS])
    arguments = parser.parse_args()
    sources = [place for folder in arguments.checkout for place in checkout.sources_of(folder)]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), \
            contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        facts = Facts(arguments.program)
        recipe.prepare(sources, arguments.gpu or "h100", facts)
        if arguments.set in SCRIPTS:
            answers = answers_of_scripts(arguments, sources)
        else:
            rows = [row for row in functions_of(arguments.set, sources) if re.search(arguments.only, row[1])]
            with tempfile.TemporaryDirectory() as folder:
                answers = [(path, function, answer_for(arguments, path, function, sources, folder, facts) if function else str(value))
                           for path, function, value in rows]
    plans = sum(not text for _, _, text in answers)
    named = sum(bool(NAMED.search(text)) for _, _, text in answers if text)
    for path, function, text in answers:
        if text:
            print(f"{path.name}:{function}: {text[:400]}")
    causes = collections.Counter(re.sub(r"^.*?: error: [^ ]* ?", "", text)[:120] for _, _, text in answers if text)
    for cause, count in causes.most_common(25):
        print(f"{count:4} {cause}")
    print(f"{arguments.set}: {len(answers)} recipes, {plans} give a plan ({plans / len(answers):.1%}), {named} more name "
          f"one missing model or mechanism ({(plans + named) / len(answers):.1%})")


main()
