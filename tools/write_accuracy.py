#!/usr/bin/env python3
"""Writes docs/accuracy.md and its table in README.md from three sources: all public rows
(tools/board.py), the tables of data/published_runs (`tpsim validate --markdown`), and the fitted
constants.

Usage: tools/write_accuracy.py BUILD/tpsim"""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from board import board_rows, by, figures as board_figures, public_tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = ROOT / "data" / "published_runs"
ORDER = ["bloom_jean_zay:numa-fixed", "bloom_jean_zay:before-numa-fix", "vtrain_a100_multi", "vtrain_a100_single", "megatron_selene",
         "dgxc_h100", "pipeline_a100", "mosaic_fsdp", "simumax_b200_a100pcie",
         "megatron_ci_memory"]
# Fitted constants by file, and the table with their calibration rows.
FITTED = [
    ("bloom_jean_zay", "stacks/megatron-deepspeed-bloom.json",
     ["host.blocking_op", "host.blocking_collective", "host.per_block_backward", "host.per_micro_batch",
      "eager_traffic", "rank_jitter", "memory.collective_buffers"]),
    ("bloom_jean_zay", "clusters/jean-zay-a100.json", ["inter_node.efficiency"]),
    ("bloom_jean_zay", "profiles/a100-sxm4-80gb.json", ["model.matmul.unaligned_batched_rate"]),
    ("vtrain_a100_single", "stacks/megatron-deepspeed.json",
     ["host.per_op", "host.per_collective", "host.per_block_forward", "host.per_block_backward",
      "host.per_micro_batch", "host.per_step", "rank_jitter"]),
    ("vtrain_a100_multi", "clusters/vtrain-a100.json", ["nic_collision_efficiency"]),
    ("dgxc_h100", "stacks/nemo.json", ["tensor_overlap", "rank_jitter"]),
    ("mosaic_fsdp", "stacks/composer-fsdp.json", ["flash_speed", "eager_traffic"]),
    ("mosaic_fsdp", "stacks/composer-fsdp-hopper.json", ["flash_speed"]),
    ("simumax_b200_a100pcie", "stacks/megatron-core.json", ["host.per_block_forward"]),
    ("simumax_b200_a100pcie", "profiles/b200-simumax.json", ["model.sustained_clock"]),
    ("moe_rows", "stacks/nemo.json",
     ["host.per_routing_forward", "host.per_routing_backward", "host.per_expert_forward"]),
]
# Tables that are predicted with the constants of other tables, and the options that select these
# constants.
FOREIGN = [
    ("bloom_jean_zay:numa-fixed", ["--stack", "megatron-deepspeed"], "vtrain_a100_single"),
    ("vtrain_a100_single", ["--stack", "megatron-lm"], "none"),
    ("vtrain_a100_multi", ["--stack", "megatron-lm"], "the network's share only"),
    ("dgxc_h100", ["--stack", "megatron-lm"], "none"),
    ("mosaic_fsdp", ["--stack", "megatron-lm"], "none"),
    ("simumax_b200_a100pcie", ["--stack", "nemo"], "dgxc_h100, and its own clock"),
]
# Tables that README.md lists, with their titles.
HEADLINES = {
    "bloom_jean_zay, numa-fixed": "BLOOM's sweep on 384 A100 (`bloom_jean_zay`, after the NUMA fix)",
    "vtrain_a100_multi": "Megatron-DeepSpeed on 64 to 512 A100 (`vtrain_a100_multi`)",
    "vtrain_a100_single": "the same on one node (`vtrain_a100_single`)",
    "megatron_selene": "Megatron-LM's papers (`megatron_selene`)",
    "dgxc_h100": "NVIDIA's recipes on H100, bf16 and fp8 (`dgxc_h100`)",
    "mosaic_fsdp": "FSDP on A100 and H100 (`mosaic_fsdp`)",
    "pipeline_a100": "Pipeline schedules on A100 (`pipeline_a100`)",
    "simumax_b200_a100pcie": "B200 and A100-PCIe (`simumax_b200_a100pcie`)",
}
STRANGERS = ["lucie_jean_zay", "internevo_a100", "fms_fsdp", "torchtitan_h100", "mlperf_nemo",
             "megatron_bridge", "moe_blackwell_dense", "nemo_summary", "torchtitan_a100",
             "torchtitan_h100_rest"]
# Sources of STRANGERS of which one stated value was chosen by one of their own rows
# (docs/decisions/parameter-units.md).
CHOSEN_BY_OWN_ROWS = ["torchtitan_a100"]
# Models of moe_rows whose rows were used to choose a constant by judgment: host time of routing,
# bandwidth of scans (costs/scan_model.h). There is no fit that excludes these rows.
JUDGED_MODELS = ["qwen3-30b-a3b", "nemotron-3-nano", "nemotron-h-56b"]
# Candidates for host.per_expert_forward in us. docs/decisions/expert-prices.md uses the one with
# the least error.
EXPERT_TIMES = [0, 30, 45, 60, 75, 90, 110]
KNOWN = """## What is known about the worst rows

- `A-089`: its own source calls it an outlier (113 s for a batch of 1568 is the time of 2048).
- `A-104` states the layout of `A-103` with 6 GiB less memory and 3 % more time; its source notes that it
  was probably run with one sequence a micro-batch. It counts all the same: 25 % of memory error.
- `A-087`, `A-151`: head_dim 128 with 12 and 26 heads a rank took 15-20 % longer than neighbours
  with 8, 16, 24, 28 or 32; unexplained.
- `A-003` to `A-025`, hidden 14400: head_dim 150 and 450 are no multiple of 8, and products over such heads
  are priced by one rate (`unaligned_batched_rate`), fitted on heads of 108 with four sequences a
  micro-batch. With one sequence heads of 150 cost about half of that. Other rows from before the repair are 8 % too
  fast: the repair is said to have brought 3.6-7.1 %, and nothing was fitted before it.
- tp 8 with two sequences a micro-batch (`A-095`, `A-097`, `A-135`) is 4-8 % slower than predicted while one
  and four sequences are not; unexplained.
- `vtrain_multi_3.6B_t8d8p1_mb64` ran on a bad node: without it the mean of that table would be one point
  lower. Eleven more of its rows are 9-38 % slower than neighbours of the same kind. All have less than eight ranks
  of tensor parallelism (or the largest micro-batch); what is missing grows with micro-batches and sequences as all-reduces inside a node do
  that run at a fraction of NVLink (tp 2 with pp 16: at 8 GB/s), yet `t4d16p8` is slow with 2, 3 and 4 sequences and not with
  6 and 12. Machines, not layouts; unexplained.
- Single-node rows with tp 8 take 10-28 % longer than predicted. With one sequence a micro-batch, two heads a
  rank are too few for Megatron's fused softmax; its fallback issues more kernels. Rows of one width, tp and
  micro-batch agree within 2 % whatever else differs, and lie up to 20 % from their neighbours (tp 2, hidden
  2048: 3.8 ms a layer with one sequence, 5.1 ms with two, 6.9 ms with four): no law in tp, width
  and micro-batch was found for that. Where one rank holds a layer, layers are predicted 20 % too slow and the head
  too fast: those rows look like runs without recompute (docs/decisions/test-rows.md).
- fp8 rows of dgxc_h100 are priced with nothing fitted to 8 bits. v24.11.1's 175B comes out 7-16 % too fast,
  v25.04's 340B 7 % too slow. Between releases the same layout became up to 10 % faster.
- `8b` of dgxc_h100: context parallelism with all heads on every GPU. 9-10 % too fast where FlashAttention-2 attends
  (v24.11, v25.02) and 3-5 % with cuDNN's (v25.04); 405B, with eight ranks of tensor parallelism, lies within 5 %. Passes
  of the ring are priced as attention of their size; what more they take is unexplained (docs/decisions/context-parallelism.md).
- mosaic_fsdp on A100 with 16 thousand and more tokens: 12-20 % too fast. One `flash_speed` stands for a kernel of
  2023 at all lengths.
- torchtitan on one node comes out 25 and 28 % too fast at cp 4 and 8, and within 9 % at cp 1 and 2 and with 405B over
  nodes (torchtitan_h100_rest); unexplained.
- torchtitan_a100 states no network. Since its reduction is in fp32 (docs/decisions/parameter-units.md), 400 Gb/s a node, taken before, cannot carry
  70B's step: 552 GB (by hand) take 11.0 of its 11.5 s. 800 Gb/s a node is taken, the next of the usual ones.
- torchtitan's 405B on eight stages holds 27 GiB more than is predicted: PyTorch's stages add up whole gradients over
  the micro-batches (24 GiB in fp32, by hand) where the plan shards them.
- megatron_ci_memory: the one row that states its GPUs holds 54.2 GiB, of which 47.2 are predicted;
  unexplained.
- Zero-bubble's rows hold 5-9 % more memory than is predicted: their allocator's peak may include what its
  caching keeps, which the source does not say.
"""


def validated(binary, runs, *options, **environment):
    """Returns the output of `tpsim validate` for a table."""
    return subprocess.run([binary, "validate", "--runs", str(runs), *options], check=True,
                          capture_output=True, text=True, **environment).stdout


def value_of(path, key):
    value = json.loads((ROOT / "data" / path).read_text())
    for part in key.split("."):
        value = value[part]
    return value


def constants():
    text = "## Constants that were fitted\n\n| table | file | constant | value |\n|---|---|---|---|\n"
    count = 0
    for table, path, keys in FITTED:
        for key in keys:
            text += f"| {table} | data/{path} | {key} | {value_of(path, key)} |\n"
            count += 1
    return text + (f"\n{count} in all; `host.per_block_backward` of megatron-core is twice its forward, `host.per_expert_backward` "
                   "one and a half times its own; megatron-core has the host constants of nemo's experts. "
                   "`residual_spread` of a stack is set by `tools/interval_spreads.py` from its calibration rows "
                   "and from the test rows of other tables; `tp_overlap: none` of megatron-core has the least error over "
                   "all rows of simumax_b200_a100pcie; `memory.spread` has the left-out errors of "
                   "memory ([intervals](decisions/intervals.md)). `tpsim_refit_constants data` fits them again and leaves each model and each "
                   "layout out in turn.\n")


def foreign(binary, folder):
    """Returns the section on tables that are predicted with software constants of other tables."""
    text = ("## With the software of another table\n\nAll rows, software constants fitted elsewhere or not "
            "at all: what to expect of a stack that nobody has calibrated.\n\n"
            "| table | options | software fitted on | n | mean | of \"50 % of peak\" | median | bias | 90 % interval holds |\n"
            "|---|---|---|---|---|---|---|---|---|\n")
    for name, options, fitted_on in FOREIGN:
        s = json.loads(validated(binary, rows_of(name, folder), "--json", *options))["summary"]
        text += (f"| {name.replace(':', ', ')} | `{' '.join(options)}` | {fitted_on} | {s['n']} | "
                 f"{s['mape']:.1f} % | {s['half_peak_mape']:.1f} % | {s['median_ape']:.1f} % | {s['bias_pct']:+.1f} % | "
                 f"{100 * s['interval_coverage_90']:.0f} % |\n")
    return text + "\nOn megatron_selene and pipeline_a100 nothing is fitted at all.\n\n"


def experts(binary, folder):
    """Returns the section on mixture-of-experts models: rows by model, with all their columns."""
    table = ROOT / "data" / "strangers" / "moe_rows.csv"
    with open(table, newline="") as source:
        row_of = {row["id"]: row for row in csv.DictReader(source)}
    all_rows = BOARD["moe_rows"]
    priced = [row for row in all_rows if row["error_pct"] is not None]
    models = {}
    for row in priced:
        models.setdefault(row_of[row["id"]]["model"], []).append(row)
    left_out = errors_left_out(binary, folder, table, row_of)
    models["all"] = priced
    text = (f"## Mixtures of experts\n\n`tpsim validate --runs data/strangers/moe_rows.csv`: {len(priced)} of "
            f"{len(all_rows)} rows are priced (the rest states no sizes). Three constants depend on rows of this "
            "table. `host.per_expert_forward` of nemo and megatron-core is fitted on the rows in 8 and 4 bits (docs/decisions/expert-prices.md). "
            "`host.per_routing_forward` was judged on three rows of qwen3-30b-a3b, named in the sources of both stacks. "
            "The bandwidth of scans was judged on three rows of nemotron-3-nano and nemotron-h (costs/scan_model.h).\n\n"
            "\"Left out\" is the error with `host.per_expert_forward` fitted on the rows of all other models. The row "
            "\"all, left out\" also omits the models on which the other two constants were judged.\n\n"
            "| model | rows | mean | bias | 90 % interval holds | left out: mean |\n|---|---|---|---|---|---|\n")
    for name, rows in models.items():
        mean = sum(left_out[row["id"]] for row in rows) / len(rows)
        text += f"| {name} | {len(rows)} | {figures(rows)} | {mean:.1f} % |\n"
    unseen = [row for row in priced if row_of[row["id"]]["model"] not in JUDGED_MODELS]
    mean = sum(left_out[row["id"]] for row in unseen) / len(unseen)
    return text + f"| all, left out | {len(unseen)} | {figures(unseen)} | {mean:.1f} % |\n\n"


def errors_left_out(binary, folder, table, row_of):
    """Returns absolute errors in percent by row. Each model is predicted with the expert time
    that fits all other models best."""
    by_time = []
    for time in EXPERT_TIMES:
        data = folder / f"experts-{time}"
        shutil.copytree(ROOT / "data", data)
        for path in (data / "stacks").glob("*.json"):
            text = re.sub(r'("per_expert_forward": ")[^"]+', rf"\g<1>{time} us", path.read_text())
            path.write_text(re.sub(r'("per_expert_backward": ")[^"]+', rf"\g<1>{1.5 * time} us", text))
        report = json.loads(validated(binary, table, "--json", env={**os.environ, "TPSIM_DATA": str(data)}))
        by_time.append({row["id"]: abs(row["error_pct"]) for row in report["rows"] if row["error_pct"] is not None})
        shutil.rmtree(data)
    errors = {}
    for model in {row["model"] for row in row_of.values()}:
        others = [id for id in by_time[0] if row_of[id]["model"] != model
                  and row_of[id]["precision_recipe"] in ("mxfp8", "nvfp4")]
        best = min(by_time, key=lambda errors: sum(errors[id] for id in others))
        errors.update({id: best[id] for id in best if row_of[id]["model"] == model})
    return errors


def mean_error(rows):
    return sum(abs(row["error_pct"]) for row in rows) / len(rows)


def figures(rows):
    """Returns mean error, bias and interval coverage as table cells."""
    bias = sum(row["error_pct"] for row in rows) / len(rows)
    held = sum(row["low_s"] <= row["measured_step_s"] <= row["high_s"] for row in rows)
    return f"{mean_error(rows):.1f} % | {bias:+.1f} % | {100 * held / len(rows):.0f} %"


def strangers(binary, folder):
    """Returns the section on external sources: predicted from the usual columns only, and from
    all columns."""
    with open(RUNS / "bloom_jean_zay.csv", newline="") as source:
        usual = next(csv.reader(source))
    text = ("## Strangers\n\nSources of data/strangers but moe_rows, with the columns of data/published_runs alone and "
            "with all that the source states. No constant was fitted on their rows. One stated value was chosen by a row "
            "of its own table: the network of torchtitan_a100 (docs/decisions/parameter-units.md), so that \"all but those\" omits that source. "
            "The rows of NeMo 24.12 in nemo_summary were seen when the stack nemo-2024 was given its attention "
            "kernel.\n\n"
            "| source | rows priced | \"50 % of peak\": mean | usual columns: mean | bias | 90 % interval holds | tau "
            "| all columns: mean | bias | 90 % interval holds | tau |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|\n")
    sums, unseen = [[], []], [[], []]
    for name in STRANGERS:
        table = ROOT / "data" / "strangers" / f"{name}.csv"
        with open(table, newline="") as source:
            rows = list(csv.reader(source))
        keep = [i for i, column in enumerate(rows[0]) if column in usual]
        plain = folder / f"{name}.csv"
        with open(plain, "w", newline="") as target:
            csv.writer(target, lineterminator="\n").writerows([row[i] for i in keep] for row in rows)
        cells = ""
        for runs, total, others in zip((plain, table), sums, unseen):
            report = json.loads(validated(binary, runs, "--json"))
            s = report["summary"]
            priced = [row for row in report["rows"] if row["error_pct"] is not None]
            total += priced
            others += [] if name in CHOSEN_BY_OWN_ROWS else priced
            tau = "-" if s["kendall_tau"] is None else f"{s['kendall_tau']:.2f}"
            cells += (f" {s['mape']:.1f} % | {s['bias_pct']:+.1f} % | "
                      f"{100 * s['interval_coverage_90']:.0f} % | {tau} |")
        text += f"| {name} | {s['n']} of {len(rows) - 1} | {s['half_peak_mape']:.1f} % |{cells}\n"
    for name, (usual_rows, rows) in (("all", sums), ("all but those", unseen)):
        half = [abs(row["half_peak_s"] / row["measured_step_s"] - 1) for row in rows]
        text += (f"| {name} | {len(rows)} | {100 * sum(half) / len(half):.1f} % | {figures(usual_rows)} | "
                 f"| {figures(rows)} | |\n")
    return text + "\n"


def sources():
    """Returns the section on all public sources: number of predicted rows, errors and interval
    coverage."""
    rows = [row for table in BOARD.values() for row in table]
    named = re.compile(r"[\w.-]+/[\w.-]+|[^@:,(;]+")
    repository = lambda row: (named.match(row["source"]) or [row["table"]])[0].strip()
    for row in rows:
        row["publisher"] = repository(row)
    text = ("## By source\n\nAll rows of data/published_runs and data/strangers, calibration rows included, by who published them "
            "(`tools/board.py BUILD/tpsim -o board.json` has every row with source, framework, GPU, model and date). Winkler score: "
            "width of the 90 % interval, and twenty times how far outside of it the measured time is, over that time.\n\n"
            "| source | rows priced | mean | bias | 90 % interval holds | Winkler score | memory |\n|---|---|---|---|---|---|---|\n")
    for name, f in sorted(by(rows, "publisher").items()):
        if not f["timed"]:
            continue
        memory = f"{f['memory_error_pct']:.1f} % of {f['memory_rows']}" if f["memory_rows"] else "-"
        text += (f"| {name} | {f['priced']} of {f['rows']} | {f['mean_error_pct']:.1f} % | {f['bias_pct']:+.1f} % | "
                 f"{f['held_pct']:.0f} % | {f['winkler']:.2f} | {memory} |\n")
    f = board_figures(rows)
    return text + (f"| all | {f['priced']} of {f['rows']} | {f['mean_error_pct']:.1f} % | {f['bias_pct']:+.1f} % | {f['held_pct']:.0f} % | "
                   f"{f['winkler']:.2f} | {f['memory_error_pct']:.1f} % of {f['memory_rows']} |\n\n")


def rows_of(name, folder):
    """Returns the path of a table, or of a copy that has only the rows of one regime
    ("table:regime")."""
    table, _, regime = name.partition(":")
    if not regime:
        return RUNS / f"{table}.csv"
    with open(RUNS / f"{table}.csv", newline="") as source:
        reader = csv.DictReader(source)
        rows = [row for row in reader if row["regime"] == regime]
    path = folder / f"{table}, {regime}.csv"
    with open(path, "w", newline="") as target:
        writer = csv.DictWriter(target, reader.fieldnames, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def cells_of(accuracy, section, row):
    """Returns the cells of the first row with this name in a section, without the name."""
    lines = accuracy[accuracy.index(f"## {section}\n"):].split("\n")
    line = next(line for line in lines if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("| ").split("|")][1:]


def headlines(accuracy):
    """Yields the rows of the table in README.md, from docs/accuracy.md."""
    rounded = lambda percent: f"{float(percent.split()[0]):.1f} %"
    n, half, usual, *_, stated, _, _ = [cell for cell in cells_of(accuracy, "Strangers", "all but those") if cell]
    sources = len(STRANGERS) - len(CHOSEN_BY_OWN_ROWS)
    yield f"external runs of {sources} sources, all stated settings given (`data/strangers`); \"50 % of peak\": {half}", n, stated, "-", "-"
    yield "the same with the usual columns alone", n, usual, "-", "-"
    n, *_, mean = cells_of(accuracy, "Mixtures of experts", "all, left out")
    yield "mixtures of experts, H100 to GB300 (`data/strangers/moe_rows`), constants fitted without the row's model", n, mean, "-", "-"
    for section, label in HEADLINES.items():
        n, mean, _, median, *_, memory, _ = cells_of(accuracy, section, "test")
        yield label, n, rounded(mean), rounded(median), memory.split(" of ")[0]


def write_readme(accuracy):
    path = ROOT / "README.md"
    before, header, rest = path.read_text().partition("| runs | test rows |")
    table, _, after = rest.partition("\n\n")
    rows = ["| " + " | ".join(row) + " |" for row in headlines(accuracy)]
    path.write_text(before + header + "\n".join(table.split("\n")[:2] + rows) + "\n\n" + after)


BOARD = {}  # rows by table


def main():
    binary = sys.argv[1]
    BOARD.update((table.stem, board_rows(binary, table)) for table in public_tables())
    text = ("# How wrong the predictions are\n\nWritten by `tools/write_accuracy.py`; do not edit. "
            "Errors are predicted over measured, less one. Test rows of data/published_runs are rows that no constant was "
            "fitted on (docs/decisions/test-rows.md: physics was chosen with them in view); "
            "calibration rows are named in `data/published_runs/environments.json`. "
            "Kendall's tau and the regret compare rows of one model, GPU count, batch and regime. \"50 % of peak\": the model's FLOPs and "
            "those of recompute at half of the dense datasheet peak of the row's dtype, the guess that "
            "needs no program.\n\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in ORDER:
            text += validated(binary, rows_of(name, pathlib.Path(folder)), "--markdown") + "\n"
        text += foreign(binary, pathlib.Path(folder))
        text += sources()
        text += strangers(binary, pathlib.Path(folder))
        text += experts(binary, pathlib.Path(folder))
    text += KNOWN + "\n" + constants()
    (ROOT / "docs" / "accuracy.md").write_text(text)
    write_readme(text)


if __name__ == "__main__":
    main()
