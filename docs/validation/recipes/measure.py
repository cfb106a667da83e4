#!/usr/bin/env python3
"""Compares predictions of Megatron-Bridge's performance recipes with the throughput that NVIDIA publishes.

    measure.py --program build/release/tpsim --bridge DIR --megatron DIR

DIR are checkouts of NVIDIA-NeMo/Megatron-Bridge and NVIDIA/Megatron-LM. The rows are those of the newest container in
docs/performance-summary.md of Megatron-Bridge. For each row, `tpsim import --run` runs
scripts/performance/setup_experiment.py with the GPU, model, number of GPUs and precision of the row, and
`tpsim simulate` predicts the imported plan.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

# Family and recipe of a model's title in the summary.
RECIPES = {"DeepSeekV3": ("deepseek", "deepseek_v3"), "DeepSeekV4 Flash": ("deepseek", "deepseek_v4_flash"),
           "GPT OSS 120B": ("gpt_oss", "gpt_oss_120b"), "Qwen3_30B_a3B": ("qwen", "qwen3_30b_a3b"),
           "Qwen3_235B_a22B": ("qwen", "qwen3_235b_a22b"), "Nemotron_3_Nano": ("nemotronh", "nemotron_3_nano"),
           "Nemotron_3_Super": ("nemotronh", "nemotron_3_super"), "Nemotron_3_Ultra": ("nemotronh", "nemotron_3_ultra")}
CLUSTERS = {"DGX-GB300": "gb300-nvl72", "DGX-GB200": "gb200-nvl72"}
PRECISIONS = {"MXFP8": "fp8_mx", "NVFP4": "nvfp4", "BF16": "bf16"}


def rows_of(summary):
    """Returns the rows of the newest container: dictionaries of the table's columns, with the model's title."""
    container = re.split(r"(?m)^## .* NeMo Container$", summary)[1].split("\n## ")[0]
    rows, model, columns = [], "", []
    for line in container.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("#### Model: "):
            model, columns = line.removeprefix("#### Model: ").strip(), []
        elif line.startswith("|") and not columns:
            columns = cells
        elif line.startswith("| DGX"):
            rows.append({"model": model, **dict(zip(columns, cells))})
    return rows


def run(arguments, *words):
    return subprocess.run([arguments.program, *words], capture_output=True, text=True, check=False)


def predicted(arguments, row, plan):
    """Returns the prediction of a row, or the reason why there is none."""
    if row["model"] not in RECIPES:
        return "no recipe of this name"
    family, recipe = RECIPES[row["model"]]
    words = (f"--account a --partition p --gpu {row['System'].removeprefix('DGX-').lower()} --model_family_name {family} "
             f"--model_recipe_name {recipe} --num_gpus {row['#-GPUs']} --compute_dtype {PRECISIONS[row['Precision']]}")
    script = arguments.bridge / "scripts" / "performance" / "setup_experiment.py"
    imported = run(arguments, "import", str(script), "--run", "--checkout", str(arguments.bridge), "--checkout",
                   str(arguments.megatron), "--set", f"@={words}", "--cluster", CLUSTERS[row["System"]], "--save", plan)
    if imported.returncode != 0:
        return imported.stderr.strip().splitlines()[-1].partition(".py: ")[2]
    return json.loads(run(arguments, "simulate", plan, "--json").stdout)["predicted"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--bridge", type=pathlib.Path, required=True)
    parser.add_argument("--megatron", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    rows = rows_of((arguments.bridge / "docs" / "performance-summary.md").read_text(encoding="utf-8"))
    errors, held = [], 0
    print("| model | machine | GPUs | precision | published tokens/s per GPU | predicted | error |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            found = predicted(arguments, row, str(pathlib.Path(folder) / "plan.json"))
            name = f"| {row['model']} | {row['System']} | {row['#-GPUs']} | {row['Precision']} "
            published = float(row["Tokens / sec / GPU"])
            if isinstance(found, str):
                print(f"{name}| {published:.0f} | - | {found} |")
                continue
            tokens = int(row["GBS"]) * int(row["Sequence Length"]) / int(row["#-GPUs"])
            low, high = (tokens / found[key] for key in ("step_s_high", "step_s_low"))
            error = tokens / found["step_s"] / published - 1
            errors.append(abs(error))
            held += low <= published <= high
            print(f"{name}| {published:.0f} | {tokens / found['step_s']:.0f} | {100 * error:+.1f} % |")
    print(f"\n{len(errors)} of {len(rows)} rows predicted, mean error {100 * sum(errors) / len(errors):.1f} %, "
          f"90 % intervals hold {held} of {len(errors)}")


if __name__ == "__main__":
    main()
