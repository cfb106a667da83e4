#!/usr/bin/env python3
"""Counts the exports of drawn plans that are written, accepted by the framework and equal after an import.

    measure.py --program build/release/tpsim --to megatron-lm --check Megatron-LM --plans 300 --seed 1
    measure.py --program build/release/tpsim --to megatron-lm --check Megatron-LM --plans 300 --change

A plan is drawn by seed over the catalogue: a model, a cluster, GPUs and a batch. The plan is the one that `tpsim plan`
recommends with the stack of the framework. With --change, `tpsim simulate` changes one setting or part of that plan to a
value that the stack can run. Plans that tpsim does not predict are not counted. A plan is equal if the import of its files
has the same step, memory and P(OOM).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile

STACKS = {"megatron-lm": "megatron-core", "nemo": "nemo", "torchtitan": "torchtitan", "accelerate": "pytorch-fsdp",
          "megatron-deepspeed": "megatron-deepspeed", "nanotron": "nanotron"}
CLUSTERS = ("dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "gb300-nvl72")
GPUS = (8, 16, 32, 64, 128, 256, 512, 1024)
BATCHES = (128, 256, 512, 1024, 2048)
JUDGED = ("megatron-lm", "nemo", "torchtitan", "accelerate")
# Options of settings whose names in plan files differ, and settings that follow from others.
FOLLOWING = {"stage_layers", "recompute_blocks", "dp", "etp", "schedule"}
TOLERANCE = 1e-9


class Tpsim:
    def __init__(self, program):
        self.program = str(program.resolve())

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)

    def schema(self):
        return json.loads(self.run("show", "schema", "plan").stdout)["properties"]

    def models(self):
        return sorted(entry["name"] for entry in json.loads(self.run("list", "models", "--json").stdout)["entries"])


def choices(tpsim):
    """(option, value) for each value of each setting and part that has a list of values."""
    properties = tpsim.schema()
    pairs = []
    for section in ("plan", "parts"):
        for key, row in properties[section]["properties"].items():
            if key in FOLLOWING:
                continue
            values = row.get("enum") or (["off", "on"] if row.get("type") == "boolean" else [])
            if row.get("type") == "integer":
                values = ["0", "1", "2", "3"] if key == "zero" else ["1", "2", "4", "8"]
            extra = {"shard_group": ["node", "16"], "cuda_graphs": ["attn", "full_iteration", "attn,moe_router"],
                     "recompute_modules": ["core_attn", "moe_act", "layernorm", "mlp", "core_attn,mla_up_proj"],
                     "expert_load": ["balanced", "natural", "1.5"]}
            pairs += [("--" + key.replace("_", "-"), value) for value in extra.get(key, values)]
    return pairs


def drawn(generator, models):
    return (generator.choice(models), generator.choice(CLUSTERS), generator.choice(GPUS), generator.choice(BATCHES))


def reason(text):
    """An error without the names of files, numbers and values, for grouping."""
    line = text.strip().splitlines()[0] if text.strip() else "no message"
    line = re.sub(r"^tpsim: error: ", "", line)
    line = re.sub(r"/[\w./+-]*/", "", line)
    return re.sub(r"\d[\d.,e+-]*", "N", line)[:150]


def predicted(tpsim, plan):
    run = tpsim.run("simulate", plan, "--json", "--max-oom", "100%")
    if not run.stdout.strip():
        return None
    numbers = json.loads(run.stdout)["predicted"]
    return numbers["step_s"], numbers["memory_gib"]["peak"], numbers["p_oom"]


def changed(tpsim, plan, pairs, generator, folder):
    """The plan with one setting or part changed so that the prediction changes; None where no choice does."""
    before = predicted(tpsim, plan)
    for option, value in generator.sample(pairs, 40):
        path = folder / "changed.json"
        path.unlink(missing_ok=True)
        tpsim.run("simulate", plan, option, value, "--save", path, "--quiet", "--max-oom", "100%")
        if path.exists() and predicted(tpsim, path) not in (None, before):
            return path, f"{option} {value}"
    return None


def one(tpsim, arguments, pairs, draw, number, folder):
    """(outcome, text) of a drawn plan."""
    model, cluster, gpus, batch = draw
    generator = random.Random(f"{arguments.seed}-{number}")
    plan, files = folder / "plan.json", folder / "files"
    stack = arguments.stack or STACKS[arguments.to]
    command = ["plan", "--model", model, "--cluster", cluster, "--gpus", gpus, "--global-batch", batch, "--stack", stack]
    name = " ".join(map(str, command))
    run = tpsim.run(*command, "--save", plan, "--quiet")
    if run.returncode or not plan.exists():
        return "no plan", reason(run.stderr), name
    if arguments.change:
        made = changed(tpsim, plan, pairs, generator, folder)
        if made is None:
            return "no plan", "no change of one setting is predicted", name
        plan, change = made
        name += " + " + change
    written = tpsim.run("export", plan, "--to", arguments.to, "-o", files, "--quiet", "--allow-oom")
    if written.returncode:
        return "not written", reason(written.stderr), name
    verdict = "written"
    if arguments.check:
        words = [word for folder_of in arguments.check for word in ("--check", folder_of)]
        judged = tpsim.run("export", plan, "--to", arguments.to, "-o", folder / "judged", "--allow-oom", *words)
        if judged.returncode:
            return "refused", reason(judged.stderr), name
        verdict = "accepted"
    back = folder / "back.json"
    read = tpsim.run("import", files, "--model", model, "--cluster", cluster, "--stack", stack, "--save", back, "--quiet")
    if not back.exists():
        return verdict + ", not imported", reason(read.stderr), name
    first, second = predicted(tpsim, plan), predicted(tpsim, back)
    same = second is not None and all(abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) for a, b in zip(first, second))
    return (verdict + ", equal", "", name) if same else (verdict + ", other", f"{first} {second}", name)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--to", required=True, choices=sorted(STACKS))
    parser.add_argument("--stack", help="stack of the plans, if not the framework's usual one")
    parser.add_argument("--check", action="append", default=[], metavar="CHECKOUT", help="let the framework judge the files")
    parser.add_argument("--plans", type=int, default=60, help="plans that are predicted [60]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--change", action="store_true", help="change one setting or part of each plan")
    parser.add_argument("--verbose", action="store_true", help="print each plan that is not equal")
    return parser.parse_args()


def main():
    arguments = parsed()
    tpsim = Tpsim(arguments.program)
    models, pairs = tpsim.models(), choices(tpsim) if arguments.change else []
    generator = random.Random(arguments.seed)
    outcomes, reasons, no_plans = collections.Counter(), collections.defaultdict(collections.Counter), collections.Counter()

    def case(item):
        number, draw = item
        with tempfile.TemporaryDirectory(prefix="tpsim-exports-") as folder:
            return one(tpsim, arguments, pairs, draw, number, pathlib.Path(folder))

    number, done = 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while done < arguments.plans and number < 10 * arguments.plans:
            batch = [(number + i, drawn(generator, models)) for i in range(os.cpu_count() * 4)]
            number += len(batch)
            for outcome, text, name in pool.map(case, batch):
                if outcome == "no plan":
                    no_plans[text] += 1
                    continue
                if done == arguments.plans:
                    break
                done += 1
                outcomes[outcome] += 1
                reasons[outcome][text] += 1
                if arguments.verbose and not outcome.endswith(", equal"):
                    print(f"{outcome}: {name}: {text}", flush=True)

    written = sum(count for outcome, count in outcomes.items() if outcome != "not written")
    accepted = sum(count for outcome, count in outcomes.items() if outcome.startswith("accepted"))
    equal = sum(count for outcome, count in outcomes.items() if outcome.endswith(", equal"))
    accepted_text = f"{accepted} accepted" if arguments.check else "not judged"
    print(f"{arguments.to}, seed {arguments.seed}{', one change' if arguments.change else ''}: {done} plans, "
          f"{written} written ({100 * written / max(1, done):.1f} %), {accepted_text}, {equal} equal after import; "
          f"{sum(no_plans.values())} draws without a plan")
    for outcome in ("not written", "refused", "accepted, other", "written, other", "accepted, not imported",
                    "written, not imported"):
        for text, count in reasons[outcome].most_common():
            print(f"  {count:3} {outcome}: {text}")


if __name__ == "__main__":
    main()
