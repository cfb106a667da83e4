#!/usr/bin/env python3
"""First commands: the default plan of every catalogue model, and hub ids as --model.

  tests/laws/first_commands.py PROGRAM plans --count 40
  tests/laws/first_commands.py PROGRAM ids

plans: models x 8, 64 and 512 GPUs x four clusters; --count draws some of them. Each is a plan whose peak is below
       the GPU's memory, or the weights exceed the memory of all GPUs, or no plan fits with every usual stack and
       every part that saves memory.
ids:   each row of hub_ids.txt, an id and a number of GPUs, is a plan on dgx-h100, or an error that names the nearest
       family or entry and asks for config.json.
Prints violations as commands to type. Exit code 1: violations.
"""
import argparse
import concurrent.futures
import itertools
import json
import pathlib
import random
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CLUSTERS = ("dgx-a100", "dgx-h100", "mi300x-8", "l40s-8")
SIZES = (8, 64, 512)
STACKS = ("nemo", "megatron-deepspeed", "torchtitan", "pytorch-fsdp", "deepspeed-zero3")
# Parts that save memory, the least memory first. If no plan fits with parts that a stack accepts, none fits with
# parts that need more.
SYNCS = (["--gradient-sync", "every_micro_batch"], [])
HEADS = (["--loss-head", "chunked"], ["--loss-head", "fused"], [])
FITS, REFUSED, NO_FIT = 0, 2, 3


class Program:
    def __init__(self, path):
        self.path = path

    def run(self, *words):
        return subprocess.run([self.path, *words], cwd=HERE, capture_output=True, text=True, check=False)

    def plan(self, model, cluster, gpus, *more):
        return self.run("plan", "--model", model, "--cluster", cluster, "--gpus", str(gpus), *more)

    def listed(self, kind):
        return [entry["name"] for entry in json.loads(self.run("list", kind, "--json").stdout)["entries"]]


def violation_of_plan(program, case):
    """Returns why the answer is wrong; empty if it is right."""
    done = program.plan(*case, "--json")
    if done.returncode == FITS:
        memory = json.loads(done.stdout)["plans"][0]["predicted"]["memory_gib"]
        return "" if memory["peak"] <= memory["capacity"] else "the plan exceeds the memory"
    if done.returncode != NO_FIT:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    report = json.loads(done.stdout)
    weights_gib = 2 * report["parameters"] / 2**30  # in 16 bits, which no part or stack reduces
    if weights_gib > report["gpus"] * report["nearest_miss"]["predicted"]["memory_gib"]["capacity"]:
        return ""
    for stack in STACKS:
        for sync, head in itertools.product(SYNCS, HEADS):
            more = ["--stack", stack, *sync, *head]
            code = program.plan(*case, *more).returncode
            if code == FITS:
                return f"no plan fits, but one does with {shlex.join(more)}"
            if code == NO_FIT:
                break
    return ""


def violation_of_id(program, case):
    name = case[0]
    # A plan of a part of the layouts is found sooner, and is one of the whole search too.
    if program.plan(*case, "--micro-batch", "1", "--recompute", "full").returncode == FITS:
        return ""
    done = program.plan(*case)
    if done.returncode == FITS:
        return ""
    text = done.stderr
    url = f"https://huggingface.co/{name}/raw/main/config.json"
    helps = done.returncode == REFUSED and "nearest: " in text and url in text
    return "" if helps else f"exit code {done.returncode}: {text.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("what", choices=("plans", "ids"))
    parser.add_argument("--count", type=int, help="number of drawn plans [all]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    program = Program(arguments.program)
    if arguments.what == "ids":
        rows = [line.split() for line in (HERE / "hub_ids.txt").read_text().splitlines()]
        cases = [(name, "dgx-h100", int(gpus)) for name, gpus in rows]
        check = violation_of_id
    else:
        cases = list(itertools.product(program.listed("models"), CLUSTERS, SIZES))
        if arguments.count:
            cases = random.Random(arguments.seed).sample(cases, arguments.count)
        check = violation_of_plan
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as pool:
        found = list(pool.map(lambda case: check(program, case), cases))
    for (model, cluster, gpus), violation in zip(cases, found):
        if violation:
            print(f"tpsim plan --model {model} --cluster {cluster} --gpus {gpus}: {violation}")
    print(f"{len(cases)} commands, {sum(map(bool, found))} violations")
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
