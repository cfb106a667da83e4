#!/usr/bin/env python3
"""Compares predictions of MLPerf Training v5.1 with the step times in the submitted logs.

    measure.py --program build/release/tpsim --results DIR

DIR is a checkout of mlcommons/training_results_v5.1. pairs.csv names a configuration, the folder of its logs and the
cluster. `tpsim import` reads the configuration, and `tpsim check-log` compares the plan with the first log.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

PAIRS = pathlib.Path(__file__).parent / "pairs.csv"


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def compared(arguments, pair, plan):
    """Returns check-log's report on a pair, or the message of the command that failed."""
    done = run(arguments.program, "import", str(arguments.results / pair["configuration"]), "--cluster", pair["cluster"],
               "--save", plan)
    if done.returncode == 0:
        log = min((arguments.results / pair["result"]).glob("result_*.txt"))
        done = run(arguments.program, "check-log", str(log), plan, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    errors, held = [], 0
    with open(PAIRS, encoding="utf-8", newline="") as file, tempfile.TemporaryDirectory() as folder:
        print("| submission | model | cluster | step, s | predicted, s | 90 % interval, s | error |\n|---|---|---|---|---|---|---|")
        for pair in csv.DictReader(file):
            _, _, system, model = pair["result"].split("/")
            found = compared(arguments, pair, str(pathlib.Path(folder) / "plan.json"))
            name = f"| {system} | {model} | {pair['cluster']} "
            if isinstance(found, str):
                print(f"{name}| - | - | - | {found} |")
                continue
            error = found["predicted_step_s"] / found["measured_step_s"] - 1
            errors.append(abs(error))
            held += found["time_as_predicted"]
            print(f"{name}| {found['measured_step_s']:.4g} | {found['predicted_step_s']:.4g} | {found['step_s_low']:.4g} to "
                  f"{found['step_s_high']:.4g} | {100 * error:+.1f} % |")
    print(f"\n{len(errors)} submissions, mean error {100 * sum(errors) / len(errors):.1f} %, 90 % intervals hold {held}")


if __name__ == "__main__":
    main()
