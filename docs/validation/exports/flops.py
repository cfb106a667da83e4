#!/usr/bin/env python3
"""Compares tpsim's model FLOPs of a step, with half of the causal mask, with those that Megatron-LM counts for its log.

    flops.py --program build/release/tpsim --checkout Megatron-LM

For each model of the catalogue, one plan of the stack megatron-core is exported. Megatron's arguments are resolved by its
own code under stubs, and num_floating_point_operations() of megatron/training/training.py counts a step.
"""
import argparse
import contextlib
import io
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
from tpsim_recipes import check  # pylint: disable=wrong-import-position

GPUS = 8
USERS = ["--train-iters", "10", "--lr", "1e-4", "--mock-data", "--tokenizer-type", "NullTokenizer"]


def predicted_flops(program, model, folder):
    """FLOPs of a step by tpsim; None for a model that cannot be exported."""
    plan = folder / "plan.json"
    plan.unlink(missing_ok=True)
    run = subprocess.run([program, "simulate", "--model", model, "--cluster", "dgx-b200", "--stack", "megatron-core", "--tp", "1",
                          "--dp", str(GPUS), "--global-batch", "64", "--allow-oom", "--save", plan, "--json"],
                         capture_output=True, text=True, check=False)
    if not plan.exists():
        return None
    files = subprocess.run([program, "export", plan, "--to", "megatron-lm", "--allow-oom", "--quiet", "-o", folder],
                           capture_output=True, check=False)
    if files.returncode:
        return None
    predicted = json.loads(run.stdout)["predicted"]
    return predicted["half_mask_tflops_per_gpu"] * predicted["step_s"] * GPUS * 1e12


def counted_flops(folder, checkout):
    """FLOPs of a step by Megatron-LM."""
    script = (folder / "megatron-lm.sh").read_text(encoding="utf-8")
    words = shlex.split(re.search(r"TRAIN_ARGS=\((.*?)\n\)", script, re.S).group(1)) + USERS
    given = folder / "given.json"
    environment = {"WORLD_SIZE": str(GPUS), "LOCAL_WORLD_SIZE": str(GPUS), "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    given.write_text(json.dumps({"arguments": words, "environment": environment, "gpu": "b200"}), encoding="utf-8")
    check.prepared(given, [checkout], "pretrain_gpt.py")
    with contextlib.redirect_stdout(io.StringIO()):
        from megatron.training import arguments, training  # pylint: disable=import-error,import-outside-toplevel
        parsed = arguments.parse_args()
        arguments.validate_args(parsed, {})
        if not parsed.padded_vocab_size:
            parsed.padded_vocab_size = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["model"]["vocab"]
        return training.num_floating_point_operations(parsed, parsed.global_batch_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--checkout", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    program = str(arguments.program.resolve())
    listed = subprocess.run([program, "list", "models", "--json"], capture_output=True, text=True, check=True).stdout
    close, all_ratios = 0, []
    with tempfile.TemporaryDirectory(prefix="tpsim-flops-") as kept:
        folder = pathlib.Path(kept)
        for model in sorted(entry["name"] for entry in json.loads(listed)["entries"]):
            flops = predicted_flops(program, model, folder)
            if flops is None:
                continue
            ratio = flops / counted_flops(folder, arguments.checkout.resolve())
            all_ratios.append(ratio)
            close += abs(ratio - 1) < 0.005
            if abs(ratio - 1) >= 0.005:
                print(f"{model:30} {100 * (ratio - 1):+5.1f} %")
    print(f"{close} of {len(all_ratios)} models within 0.5 %")


if __name__ == "__main__":
    main()
