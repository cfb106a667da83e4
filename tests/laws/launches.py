"""Launch files: import reads exported files, and settings that export cannot write are named."""
import json
import os
import re
import tempfile

from base import Skip, close, differences, law
from files import limits, saving
from program import Refused, typed, words_of

# The stack file for predictions of each launcher's plans.
STACKS = {"megatron-lm": "megatron-core", "megatron-deepspeed": "megatron-deepspeed", "nemo": "nemo",
          "torchtitan": "torchtitan", "nanotron": "nanotron", "accelerate": "pytorch-fsdp",
          "deepspeed": "deepspeed-zero3"}
LAUNCHERS = tuple(STACKS)


def comparable(case, file, stack):
    """Returns the parts of a saved plan that launch files
    should keep, including the parts of its stack."""
    saved, own = json.loads(file), case.tpsim.show("stack", stack)["parts"]
    return {"model": saved["model"], "parts": {**own, **saved.get("parts", {})}, **saved["plan"]}


def brought_back(case, export, launcher, options):
    """Returns the plan file that tpsim import writes from exported files."""
    with tempfile.TemporaryDirectory(dir=case.folder) as folder:
        for file in export["files"]:
            with open(os.path.join(folder, file["name"]), "w", encoding="utf-8") as out:
                out.write(file["text"])
        _, files = case.tpsim.call("import_plan", {"--from": launcher, **{
            name: options[name] for name in ("--cluster", "--stack")}}, path=folder)
    return files[0]


def export_faults(case, launcher, options):
    """Yields the faults of exporting and importing a plan, as (kind, text)."""
    report, file = case.tpsim.simulate(options)
    try:
        export, _ = case.tpsim.call("export", {"--to": launcher, "--allow-oom": None, "--allow-loss": None,
                                               **limits(case)}, file)
    except Refused as error:
        if error.is_bug or not error.message:
            yield "export fails", error
        return
    if not close(export["step_s"], report["predicted"]["step_s"]):
        yield "export predicts another step", f"{export['step_s']} and {report['predicted']['step_s']}"
    if "import_refuses" in export:
        return  # reported, and files are written only with --allow-loss
    try:
        back = brought_back(case, export, launcher, options)
    except Refused as error:
        yield "import refuses what export calls readable", error
        return
    again, _ = case.tpsim.simulate(limits(case), back)
    step, back_step = report["predicted"]["step_s"], again["predicted"]["step_s"]
    if not close(back_step, export["step_s_back"], 1e-6):
        yield "import gives another step than export says", f"{back_step} and {export['step_s_back']}"
    lost = {entry["key"] for entry in export["lost"]}
    for path, was, now in differences(comparable(case, file, STACKS[launcher]),
                                      comparable(case, back, STACKS[launcher])):
        keys = path.split(".")
        row = keys[1] if keys[0] in ("parts", "model") else keys[0]
        if not {path, keys[0], keys[-1], ".".join(keys[1:])} & lost and not close(back_step, step, 1e-6):
            yield f"{launcher}: {row} comes back different, unnamed", f"{path}: {was} and {now}; lost: {sorted(lost)}"


@law("prediction")
def exported(case):
    """A plan is unchanged by export and import without --model, apart from settings that export names as lost."""
    launcher = case.rng.choice(LAUNCHERS)
    options = {**case.without("--node-gbps", "--ignore-stack-limits"), "--stack": STACKS[launcher]}
    for kind, text in export_faults(case, launcher, options):
        yield case.violation(kind, text, saving(case, options),
                             typed("export", {"--to": launcher, "--allow-loss": None, "--allow-oom": None,
                                              "-o": "launch"}, "p.json"),
                             typed("import", {"--from": launcher, "--cluster": options["--cluster"],
                                              "--stack": options["--stack"], "--save": "q.json"}, "launch"),
                             "tpsim compare p.json q.json")


@law("search", weight=0.25)
def advised(case):
    """The launch files that NEXT of a plan recommends are written."""
    with tempfile.TemporaryDirectory(dir=case.folder) as folder:
        path = os.path.join(folder, "p.json")
        options = {**case.options, "--threads": 1}
        code, out, _ = case.tpsim.command("plan", *words_of({**options, "--save": path}))
        advice = re.search(r"export\s+\S+\s+--to\s+(\S+)", out.replace("\\\n", " "))  # a long command is on several lines
        if code != 0 or not advice:
            raise Skip
        code, _, error = case.tpsim.command("export", path, "--to", advice.group(1), "--quiet")
    if code != 0:
        yield case.violation("NEXT recommends files that export refuses", error.strip(),
                             typed("plan", {**options, "--save": "p.json"}),
                             typed("export", {"--to": advice.group(1)}, "p.json"))
