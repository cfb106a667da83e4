#!/usr/bin/env python3
"""Counts the exports of drawn plans that are written, accepted by the framework and equal after an import.

    measure.py --program build/release/tpsim --to megatron-lm --check Megatron-LM --plans 300 --seed 1
    measure.py ... --change    one setting or part of each plan is changed
    measure.py ... --draw      layout, settings and parts are drawn  (tools/nightly.sh has the checkouts)

A scenario is drawn by seed over the catalogue: a model, a cluster, GPUs and a batch. The plan is the one that `tpsim plan`
recommends with the stack of the framework. `plan` refuses models that the framework does not have, and scenarios in which
no layout fits. Both are counted apart. With --change, `tpsim simulate` changes one setting or part of that plan to a value
that the stack can run. With --draw, the plan is not searched: layout, settings and parts are all drawn, up to 16 at a time, and
those that `tpsim simulate` or the export refuses are left out. The exit code is 1 if a plan is refused or not equal. A plan is equal if the import of its files without --model has the same step, memory and P(OOM).
A table lists the changes that are not written, with the error."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from drawing import accepted_options, drawn_options

STACKS = {"megatron-lm": "megatron-core", "nemo": "nemo", "torchtitan": "torchtitan", "accelerate": "pytorch-fsdp",
          "megatron-deepspeed": "megatron-deepspeed", "nanotron": "nanotron", "deepspeed": "deepspeed-zero3"}
CLUSTERS = ("dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "gb300-nvl72")
GPUS, BATCHES = (8, 16, 32, 64, 128, 256, 512, 1024), (128, 256, 512, 1024, 2048)
JUDGES = {"accelerate": "accelerate", "deepspeed": "deepspeed", "megatron-deepspeed": "megatron-deepspeed", "megatron-lm": "megatron-lm",
          "nemo": "megatron-bridge", "torchtitan": "torchtitan"}
CONFIGS = {"accelerate": "accelerate.yaml", "deepspeed": "ds_config.json", "megatron-deepspeed": "ds_config.json"}  # files that a judge reads
PACKAGES = pathlib.Path(__file__).resolve().parents[3] / "python"
START = ("import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
         "runpy.run_module('tpsim_recipes', run_name='__main__', alter_sys=True)")
# Options of settings whose names in plan files differ, and settings that follow from others.
FOLLOWING = {"stage_layers", "recompute_blocks", "dp", "etp", "schedule"}
OTHER_NAMES = {"cuda_graphs": "--cuda-graph-scope", "optimizer_kind": "--optimizer"}  # options not named like their parts
NO_MODEL = re.compile(r"--stack: stack \S+ cannot run (.*?): ")  # in the error of `plan`
LACKING = ("export does not support", "has no option for")  # in errors about features that the framework lacks
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
            pairs += [(OTHER_NAMES.get(key, "--" + key.replace("_", "-")), value) for value in extra.get(key, values)]
    return pairs


def drawn(generator, models):
    return (generator.choice(models), generator.choice(CLUSTERS), generator.choice(GPUS), generator.choice(BATCHES))


def reason(text):
    """An error without the names of files, numbers and values, for grouping."""
    lines = text.strip().splitlines() or ["no message"]
    line = next((one for one in lines if one.startswith("tpsim: error: ")), lines[0])
    line = re.sub(r"^tpsim: error: ", "", line)
    line = re.sub(r"/[\w./+-]*/", "", line)
    return re.sub(r"\d[\d.,e+-]*", "N", line)[:150]


def message(text):
    """An export's error without the program's name, what the prediction would lose, and the option that writes it anyway."""
    line = next((one for one in text.splitlines() if one.startswith("tpsim: error: ")), text.strip())
    line = re.sub(r"^tpsim: error: |: step \S+ -> .*$| \(--allow-loss writes the files anyway\)$", "", line)
    return re.sub(r"/tmp/[\w./+-]*/", "", line)


def predicted(tpsim, plan):
    run = tpsim.run("simulate", plan, "--json", "--allow-oom")
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
        tpsim.run("simulate", plan, option, value, "--save", path, "--quiet", "--allow-oom")
        if path.exists() and predicted(tpsim, path) not in (None, before):
            return path, f"{option} {value}"
    return None


def value_of(text):
    if text == "null":
        return None
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("["):
        return [value_of(part.strip()) for part in text[1:-1].split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text.strip('"')


def overrides_of(text):
    """The settings of an exported YAML file by their keys, with dots between sections."""
    overrides, sections = {}, []
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        if line.startswith("#"):
            continue
        sections = sections[:(len(line) - len(line.lstrip())) // 2] + [key]
        if value.strip():
            overrides[".".join(sections)] = value_of(value.strip())
    return overrides


def given_of(framework, files, plan):
    """The input that `tpsim export --check` passes to the judge of the framework (frameworks/launch/judged_export.cc)."""
    script = (files / f"{framework}.sh").read_text(encoding="utf-8")
    environment = dict(re.findall(r"^export (\w+)=(\S*)", script, re.M))
    nodes, gpus = (int(re.search(rf"^{name}=(\d+)", script, re.M).group(1)) for name in ("NUM_NODES", "GPUS_PER_NODE"))
    environment.update({"WORLD_SIZE": str(nodes * gpus), "LOCAL_WORLD_SIZE": str(gpus)})
    if framework == "nemo":
        model = json.loads(plan.read_text(encoding="utf-8"))["model"]
        blocks = [model] + model.get("blocks", {}).get("others", [])
        attention = next((one["attention"] for one in blocks if one.get("attention", {}).get("heads")), {})
        shape = {"num_layers": model["layers"], "hidden_size": model["hidden"],
                 "num_attention_heads": attention.get("heads"), "num_query_groups": attention.get("kv_heads"),
                 "kv_channels": attention.get("head_dim"), "add_bias_linear": bool(model.get("linear_bias"))}
        if "experts" in model:
            shape.update({"num_moe_experts": model["experts"]["count"], "moe_router_topk": model["experts"]["per_token"]})
        if model.get("extras", {}).get("prediction_layers"):
            shape["mtp_num_layers"] = model["extras"]["prediction_layers"]
        yaml = (files / "nemo.yaml").read_text(encoding="utf-8")
        return {"overrides": overrides_of(yaml), "model": shape, "environment": environment}
    words = shlex.split(re.search(r"TRAIN_ARGS=\((.*?)\n\)", script, re.S).group(1))
    if framework == "torchtitan":
        model = json.loads(plan.read_text(encoding="utf-8"))["model"]
        shape = {"layers": model["layers"], "hidden": model["hidden"], "experts": model.get("experts", {}).get("count", 0)}
        module = re.search(r"<<'END_OF_MODULE'\n(.*?)END_OF_MODULE\n", script, re.S)
        return {"arguments": words, "model": shape, "environment": environment, "module": module.group(1) if module else ""}
    if framework in CONFIGS:
        return {"arguments": words, "file": CONFIGS[framework], "environment": environment}
    users = ["--train-iters", "10", "--lr", "1e-4", "--mock-data", "--tokenizer-type", "NullTokenizer"]
    return {"arguments": words + users, "environment": environment}


def verdicts(arguments):
    """{number of a plan: the judge's answer} for the files of all plans."""
    by_checkout = collections.defaultdict(list)
    for file in sorted(arguments.given.glob("*/arguments.json")):
        former = file.with_name("checkout")
        by_checkout[(former.read_text(encoding="utf-8"),) if former.exists() else tuple(arguments.check)].append(file)
    found = {}
    for checkouts, files in by_checkout.items():
        found.update(verdicts_of(arguments, checkouts, files))
    return found


def verdicts_of(arguments, checkouts, files):
    found = {}
    environment = {**os.environ, "TPSIM_JUDGES": str(PACKAGES.parent / "tools")}
    for first in range(0, len(files), 100):
        part = files[first:first + 100]
        words = [word for folder in checkouts for word in ("--checkout", folder)]
        command = [sys.executable, "-I", "-S", "-c", START, str(PACKAGES), "--seconds", "600", *words, "check",
                   JUDGES[arguments.to], *map(str, part)]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
        if "error" in answer:
            raise SystemExit(f"the judge failed: {answer['error']} {answer.get('hint', '')}")
        answers = answer["verdicts"] if len(part) > 1 else [answer]
        found.update({int(file.parent.name): one for file, one in zip(part, answers)})
    return found


def recommended(tpsim, command, plan, cache):
    """Writes the plan that `tpsim plan` recommends. Returns the error if there is none."""
    key = hashlib.sha256(" ".join(map(str, command)).encode()).hexdigest()[:16]
    kept, failed = (cache / (key + ending) if cache else None for ending in (".json", ".error"))
    if cache and kept.exists():
        shutil.copy(kept, plan)
    elif cache and failed.exists():
        return failed.read_text(encoding="utf-8")
    else:
        run = tpsim.run(*command, "--save", plan, "--quiet")
        if run.returncode or not plan.exists():
            if cache:
                failed.write_text(run.stderr, encoding="utf-8")
            return run.stderr
        if cache:
            shutil.copy(plan, kept)
    return None


def one(tpsim, arguments, pairs, draw, number, folder):
    """(outcome, text) of a drawn plan."""
    model, cluster, gpus, batch = draw
    generator = random.Random(f"{arguments.seed}-{number}")
    plan, files = folder / "plan.json", folder / "files"
    stack = arguments.stack or STACKS[arguments.to]
    place = ["--gpus", gpus] if not arguments.draw else ["--dp", gpus, "--allow-oom"]
    command = ["simulate" if arguments.draw else "plan", "--model", model, "--cluster", cluster, *place,
               "--global-batch", max(batch, gpus), "--stack", stack]
    name = " ".join(map(str, command))
    error = recommended(tpsim, command, plan, arguments.cache)
    if error is not None:
        lacking = NO_MODEL.search(error)
        return ("no model", lacking.group(1), model) if lacking else ("no plan", reason(error), name)
    if arguments.change:
        made = changed(tpsim, plan, pairs, generator, folder)
        if made is None:
            return "no plan", "no change of one setting is predicted", name
        plan, change = made
        name += " + " + change
    if arguments.draw:
        kept = accepted_options(tpsim, arguments, plan, drawn_options(pairs, gpus, generator), folder)
        name += " + " + " ".join(map(str, sum(kept, [])))
    written = tpsim.run("export", plan, "--to", arguments.to, "-o", files, "--quiet", "--allow-oom")
    if written.returncode:
        return "not written", message(written.stderr), name
    verdict = "written"
    if arguments.check and arguments.each:
        words = ["--check", arguments.check[0]]
        if arguments.check[1:]:
            words += ["--checkout", ",".join(arguments.check[1:])]
        judged = tpsim.run("export", plan, "--to", arguments.to, "-o", folder / "judged", "--allow-oom", *words)
        if judged.returncode:
            return "refused", reason(judged.stderr), name
        verdict = "accepted"
    elif arguments.check:
        given = arguments.given / str(number)
        given.mkdir()
        judged = {**given_of(arguments.to, files, plan), "gpu": json.loads(plan.read_text(encoding="utf-8"))["profile"]}
        (given / "arguments.json").write_text(json.dumps(judged), encoding="utf-8")
        for former in arguments.former:
            prefix, _, checkout = former.partition("=")
            if model.startswith(prefix):
                (given / "checkout").write_text(checkout, encoding="utf-8")
        if arguments.to in CONFIGS:
            shutil.copy(files / CONFIGS[arguments.to], given)
    back = folder / "back.json"
    read = tpsim.run("import", files, "--cluster", cluster, "--stack", stack, "--save", back, "--quiet")
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
    parser.add_argument("--former", action="append", default=[], metavar="MODEL=CHECKOUT",
                        help="judge models whose names start with MODEL by this checkout")
    parser.add_argument("--each", action="store_true", help="judge each plan by tpsim export --check")
    parser.add_argument("--cache", type=pathlib.Path, help="folder that keeps the plans")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="plans at a time [all cores]")
    parser.add_argument("--plans", type=int, default=60, help="plans that are predicted [60]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--change", action="store_true", help="change one setting or part of each plan")
    parser.add_argument("--draw", action="store_true", help="draw layout, settings and parts together instead of a search")
    parser.add_argument("--verbose", action="store_true", help="print each plan that is not equal")
    return parser.parse_args()


def main():
    arguments = parsed()
    with tempfile.TemporaryDirectory(prefix="tpsim-judged-") as folder:
        arguments.given = pathlib.Path(folder)
        sys.exit(count(arguments))


def count(arguments):
    tpsim = Tpsim(arguments.program)
    models, pairs = tpsim.models(), choices(tpsim) if arguments.change or arguments.draw else []
    generator = random.Random(arguments.seed)
    no_plans, no_models, cases = 0, collections.defaultdict(collections.Counter), []

    def case(item):
        number, draw = item
        with tempfile.TemporaryDirectory(prefix="tpsim-exports-") as folder:
            return number, *one(tpsim, arguments, pairs, draw, number, pathlib.Path(folder))

    number = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as pool:
        while len(cases) < arguments.plans and number < 10 * arguments.plans:
            batch = [(number + i, drawn(generator, models)) for i in range(4 * arguments.threads)]
            number += len(batch)
            for which, outcome, text, name in pool.map(case, batch):
                if len(cases) == arguments.plans:
                    break
                if outcome == "no plan":
                    no_plans += 1
                elif outcome == "no model":
                    no_models[text][name] += 1
                else:
                    cases.append((which, outcome, text, name))
    if arguments.check and not arguments.each:
        found = verdicts(arguments)
        cases = [judged_case(found.get(case[0]), *case) for case in cases]
    report_draws(arguments, len(cases), no_models, no_plans)
    report(arguments, cases)
    wrong = [outcome for _, outcome, _, _ in cases if outcome != "not written" and not outcome.endswith(", equal")]
    return 1 if wrong or not cases else 0


def judged_case(verdict, which, outcome, text, name):
    if verdict is None:
        return which, outcome, text, name
    if not verdict.get("accepted"):
        message = verdict.get("message") or verdict.get("error", "")
        return which, "refused", reason(f"{message} ({verdict.get('where', '')})"), name
    return which, outcome.replace("written", "accepted", 1), text, name


def report_draws(arguments, recommended_plans, no_models, no_plans):
    lacking = sum(sum(models.values()) for models in no_models.values())
    print(f"{arguments.to}, seed {arguments.seed}: {lacking + no_plans + recommended_plans} scenarios drawn, {lacking} refused "
          f"by plan since the framework lacks the model, {no_plans} without a plan, {recommended_plans} recommended")
    for feature, models in sorted(no_models.items()):
        print(f"  {sum(models.values()):3} lacking {feature}: {', '.join(sorted(models))}")


def report_changes(cases):
    """The changes that are not written, by reason: how many plans, the reason, the option with its values and their counts."""
    changes = collections.defaultdict(collections.Counter)
    for _, outcome, text, name in cases:
        if outcome == "not written":
            option, _, value = name.rpartition(" + ")[2].partition(" ")
            changes[option, text][value] += 1
    rows = sorted(changes.items(), key=lambda row: (row[0][0], -row[1].total(), row[0][1]))
    print("| plans | change that is not written | reason |\n|---|---|---|")
    for (option, text), values in rows:
        given = ", ".join(f"{value} ({count})" for value, count in values.most_common())
        print(f"| {values.total()} | `{option}` {given} | {text} |")


def report(arguments, cases):
    outcomes, reasons = collections.Counter(), collections.defaultdict(collections.Counter)
    for _, outcome, text, name in cases:
        outcomes[outcome] += 1
        reasons[outcome][text] += 1
        if arguments.verbose and not outcome.endswith(", equal"):
            print(f"{outcome}: {name}: {text}")
    written = sum(count for outcome, count in outcomes.items() if outcome != "not written")
    accepted = sum(count for outcome, count in outcomes.items() if outcome.startswith("accepted"))
    equal = sum(count for outcome, count in outcomes.items() if outcome.endswith(", equal"))
    accepted_text = f"{accepted} accepted" if arguments.check else "not judged"
    lacking = sum(outcome == "not written" and any(one in text for one in LACKING) for _, outcome, text, _ in cases)
    able = len(cases) - lacking
    kind = ", one change" if arguments.change else ", drawn together" if arguments.draw else ""
    print(f"{arguments.to}, seed {arguments.seed}{kind}: {len(cases)} plans, "
          f"{written} written ({100 * written / max(1, len(cases)):.1f} %; {100 * written / max(1, able):.1f} % of {able} "
          f"that the framework can express), {accepted_text}, {equal} equal after import")
    if arguments.change:
        report_changes(cases)
    for outcome in sorted(outcomes):
        if not outcome.endswith(", equal") and not (arguments.change and outcome == "not written"):
            for text, count in reasons[outcome].most_common():
                print(f"  {count:3} {outcome}: {text}")


if __name__ == "__main__":
    main()
