#!/usr/bin/env python3
"""Compares captured steps with the measured steps of the same script.

Usage: capture_validation.py RUNS.csv --cluster NAME [--program build/release/tpsim] [--only SUBSTRING]
                             [--cases NAME] [--gpu NAME] [--steps FOLDER]

RUNS.csv is a table that tools/torch_training.py wrote on a GPU. Each of its cases is captured here with
python -m tpsim_capture (needs PyTorch and transformers, no GPU), predicted, and compared in step time and in
PyTorch's peak of allocated bytes. --steps keeps the captured steps, and reads those that are there.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*command):
    """Returns what a command prints. The error has the last line that it printed."""
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONPATH=str(HERE.parent / "python")))
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.stdout


def capture(path, world, *words):
    """Captures a script with its arguments into a file, unless the file is there."""
    if not path.exists():
        run(sys.executable, "-m", "tpsim_capture", "--world", world, "--out", path, *words)
    return path


def predict(program, path, cluster):
    return json.loads(run(program, "simulate", "--program", path, "--cluster", cluster, "--json"))


def parse(parser):
    """Returns the arguments, with those that all comparisons of captured steps have, and the folder of the steps."""
    parser.add_argument("--program", default="build/release/tpsim")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=pathlib.Path)
    asked = parser.parse_args()
    folder = asked.steps or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    return asked, folder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--cases", default="first", help="list of torch_training.py")
    parser.add_argument("--gpu", default="h100")
    asked, folder = parse(parser)
    times, memories, held = [], [], 0
    print("case\tpredicted ms\tmeasured ms\terror %\tpredicted GiB\tmeasured GiB\terror %")
    for row in csv.DictReader(asked.runs.open()):
        if asked.only not in row["id"] or row["outcome"] != "ok":
            continue
        try:
            path = capture(folder / f"{row['id']}.json", row["gpus"], "--gpu", asked.gpu, HERE / "torch_training.py",
                           folder / "unused.csv", "--only", row["id"], "--cases", asked.cases)
            report = predict(asked.program, path, asked.cluster)
        except RuntimeError as error:
            print(f"{row['id']}\tnot captured: {error}", flush=True)
            continue
        allocated = sum(size for kind, size in report["memory"].items() if kind not in ("context", "fragmentation"))
        memory = float(row["mem_gb"])
        memories.append(100 * (allocated / memory - 1))
        print(row["id"], end="\t")
        if row["step_s"]:  # tables of one rank of many have memory only
            step = float(row["step_s"])
            times.append(100 * (report["step_s"] / step - 1))
            held += report["step_low_s"] <= step <= report["step_high_s"]
            print(f"{1e3 * report['step_s']:.1f}\t{1e3 * step:.1f}\t{times[-1]:+.1f}", end="\t")
        print(f"{allocated:.2f}\t{memory:.2f}\t{memories[-1]:+.2f}", flush=True)
    if times:
        print(f"{len(times)} rows: mean error of time {statistics.mean(map(abs, times)):.1f} %, intervals hold {held}")
    if memories:
        print(f"{len(memories)} rows: mean error of memory {statistics.mean(map(abs, memories)):.2f} %")


if __name__ == "__main__":
    main()
