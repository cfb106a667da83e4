#!/usr/bin/env python3
"""Sets residual_spread of every stack in data/stacks, which determines the 90 % intervals.

The own spread of a stack is that of its calibration rows, widened by Student's t for a small
sample. Test rows have larger errors, because the constants were fitted to calibration rows. An
additional spread is therefore fitted so that intervals contain 90 % of the test rows, with equal
weight for each table. A stack's own test rows are excluded from this fit. Stacks without
calibration rows use the median of the own spreads of other stacks.

Software without calibration rows (stacks with spread_gpus) has the residual quantiles of its rows in
the tables of data/strangers and of --runs. Each source counts the same; GPUs that spread_gpus does not
name count as sources of their own and have a quantile for each end of the interval. The values
without each source are printed with the rows they hold, for LEFT_OUT in tools/board.py.

Usage: tools/interval_spreads.py BUILD/tpsim [--write] [--runs TABLE.csv...]"""
import argparse
import json
import math
import os
import pathlib
import re
import shutil
import tempfile

from board import board_rows, is_priced, winkler
from write_accuracy import ROOT, rows_of, validated

NORMAL_90 = 1.645
# Two-sided 90 % quantiles of Student's t, by degrees of freedom.
STUDENT_90 = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782,
              1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725]
# Tables of runs, and the stacks that predict them.
TABLES = [
    ("bloom_jean_zay:numa-fixed", ["megatron-deepspeed-bloom"]),
    ("bloom_jean_zay:before-numa-fix", ["megatron-deepspeed-bloom-early"]),
    ("vtrain_a100_multi", ["megatron-deepspeed"]),
    ("vtrain_a100_single", ["megatron-deepspeed"]),
    ("megatron_selene", ["megatron-lm", "megatron-lm-2021"]),
    ("pipeline_a100", ["megatron-lm", "megatron-lm-2021"]),
    ("dgxc_h100", ["nemo"]),
    ("mosaic_fsdp", ["composer-fsdp", "composer-fsdp-hopper"]),
    ("simumax_b200_a100pcie", ["megatron-core"]),
]


class Row:
    def __init__(self, row):
        self.calibration = row["calibration"]
        self.error = math.log(row["measured_step_s"] / row["predicted_step_s"])
        # Variance of the interval without residual_spread: kernel prices, host, network, repeats.
        half = math.log(row["high_s"] / row["predicted_step_s"])
        self.other_variance = (half / NORMAL_90) ** 2

    def is_held(self, residual):
        half = NORMAL_90 * math.sqrt(residual ** 2 + self.other_variance)
        return abs(self.error) <= half


def without_residuals(folder):
    """Returns a copy of data/ with residual_spread 0 in all stacks."""
    data = folder / "data"
    shutil.copytree(ROOT / "data", data)
    for path in (data / "stacks").glob("*.json"):
        write_spread(path, 0.0)
    return data


def write_spread(path, value):
    text = path.read_text()
    path.write_text(re.sub(r'("residual_spread": )[0-9.]+', rf"\g<1>{value:.3g}", text))


def widen(path, value):
    """Raises residual_spread in the file. It is never reduced, since a refit of a constant does
    not reduce the uncertainty."""
    if value > json.loads(path.read_text())["residual_spread"]:
        write_spread(path, value)


def read_tables(binary, folder):
    environment = dict(os.environ, TPSIM_DATA=str(without_residuals(folder)))
    tables = {}
    for name, _ in TABLES:
        report = json.loads(validated(binary, rows_of(name, folder), "--json", env=environment))
        tables[name] = [Row(row) for row in report["rows"]
                        if row["error_pct"] is not None and not row["skipped_because"]]
    return tables


def own_spread(rows):
    """Returns the spread of calibration rows for the prediction of one more row; None for fewer
    than two rows."""
    if len(rows) < 2:
        return None
    widening = STUDENT_90[min(len(rows) - 1, len(STUDENT_90)) - 1] / NORMAL_90
    squares = sum(row.error ** 2 for row in rows) / len(rows)
    variance = squares * widening ** 2 * (1 + 1 / len(rows))
    return math.sqrt(max(0.0, variance - sum(row.other_variance for row in rows) / len(rows)))


def gap(tables, spread_of, left_out):
    """Returns the additional spread with which the intervals of all other tables contain 90 % of
    the rows on average."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        held = [sum(row.is_held(math.hypot(middle, spread_of[name])) for row in rows) / len(rows)
                for name, rows in tables.items() if name not in left_out]
        low, high = (middle, high) if sum(held) / len(held) < 0.9 else (low, middle)
    return high


def is_named(profile, names):
    return any(profile.startswith(name) for name in names.split(","))


def uncalibrated_rows(binary, folder, tables):
    """Returns rows of software without calibration by whether spread_gpus names their GPU, and by
    source. Their intervals have neither residual_spread nor the spreads of other GPUs."""
    data = without_residuals(folder)
    names = {}
    for path in (data / "stacks").glob("*.json"):
        stack = json.loads(path.read_text())
        names[stack["name"]] = stack.pop("spread_gpus", "")
        path.write_text(json.dumps(stack))
    profiles = {path.stem: json.loads(path.read_text())["profile"] for path in (data / "clusters").glob("*.json")}
    rows = {True: {}, False: {}}
    for table in tables:
        for row in board_rows(binary, table, env=dict(os.environ, TPSIM_DATA=str(data))):
            if not is_priced(row) or row["error_pct"] is None or not names.get(row["stack"]):
                continue
            known = is_named(profiles.get(row["cluster"], row["cluster"]), names[row["stack"]])
            source = row["source"].split("@")[0] + ("" if known else " on " + row["gpu"])
            rows[known].setdefault(source, []).append(row)
    return rows


def ends(row, faster, slower):
    """Returns the interval of a row with additional spreads, as sim/step/interval.cc sets it."""
    step = row["predicted_step_s"]
    below, above = 1 - row["low_s"] / step, math.log(row["high_s"] / step)
    below, above = math.hypot(below, NORMAL_90 * faster), math.hypot(above, NORMAL_90 * slower)
    low = 1 - below if below <= 0.5 else 0.5 * math.exp((0.5 - below) / 0.5)
    return low * step, math.exp(above) * step


def spread_holding(sources, share, is_inside):
    """Returns the least spread for which is_inside(row, spread) holds for a share of the rows, with
    the same weight for each source."""
    low, high = 0.0, 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        held = [sum(is_inside(row, middle) for row in rows) / len(rows) for rows in sources.values()]
        low, high = (middle, high) if sum(held) / len(held) < share else (low, middle)
    return round(high, 3)


def is_above_low(row, spread):
    return ends(row, spread, 0)[0] <= row["measured_step_s"]


def is_below_high(row, spread):
    return row["measured_step_s"] <= ends(row, 0, spread)[1]


def spreads_of(known, others):
    """Returns residual_spread, other_gpus_faster and other_gpus_slower."""
    both = spread_holding(known, 0.9, lambda row, s: is_above_low(row, s) and is_below_high(row, s))
    sides = [spread_holding(others, 0.95, is_inside) for is_inside in (is_above_low, is_below_high)]
    return both, *(round(math.sqrt(max(0, side ** 2 - both ** 2)), 3) for side in sides)


def without(sources, table_of):
    return {name: rows for name, rows in sources.items() if name.split(" on ")[0] != table_of}


def print_uncalibrated(known, others):
    print("software without calibration rows: residual_spread, other_gpus_faster, other_gpus_slower", *spreads_of(known, others))
    for source in sorted({name.split(" on ")[0] for name in [*known, *others]}):
        both, faster, slower = spreads_of(without(known, source), without(others, source))
        for name, rows, is_known in [(n, r, n in known) for n, r in (known | others).items() if n.split(" on ")[0] == source]:
            added = (both, both) if is_known else (math.hypot(both, faster), math.hypot(both, slower))
            limits = [ends(row, *added) for row in rows]
            held = sum(low <= row["measured_step_s"] <= high for row, (low, high) in zip(rows, limits)) / len(rows)
            score = sum(winkler(row | {"low_s": low, "high_s": high}) for row, (low, high) in zip(rows, limits)) / len(rows)
            print(f"  without {source[:30]:30s} {both:.3f} {faster:.3f} {slower:.3f}: held {100 * held:3.0f} % of {len(rows):3d}, "
                  f"winkler {score:.2f} {'' if is_known else name.split(' on ')[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", nargs="+", type=pathlib.Path, default=[], help="tables beside data/strangers")
    arguments = parser.parse_args()
    binary = arguments.binary
    with tempfile.TemporaryDirectory() as folder:
        tables = [*sorted((ROOT / "data" / "strangers").glob("*.csv")), *arguments.runs]
        uncalibrated = uncalibrated_rows(binary, pathlib.Path(folder), tables)
    print_uncalibrated(uncalibrated[True], uncalibrated[False])
    with tempfile.TemporaryDirectory() as folder:
        tables = read_tables(binary, pathlib.Path(folder))
    groups = {}
    for name, stacks in TABLES:
        groups.setdefault(stacks[0], []).append(name)
    own = {stack: own_spread([row for name in names for row in tables[name] if row.calibration])
           for stack, names in groups.items()}
    known = sorted(spread for spread in own.values() if spread is not None)
    usual = known[len(known) // 2]
    spread_of = {name: own[stacks[0]] if own[stacks[0]] is not None else usual
                 for name, stacks in TABLES}
    test = {name: [row for row in rows if not row.calibration] for name, rows in tables.items()}
    print("stack                            own    gap of the others  residual_spread  test rows held")
    for stack, names in groups.items():
        on_top = gap(test, spread_of, names)
        spread = math.hypot(on_top, spread_of[names[0]])
        held = ", ".join(f"{name} {100 * sum(row.is_held(spread) for row in test[name]) / len(test[name]):.0f} %"
                         for name in names)
        print(f"{stack:32} {spread_of[names[0]]:.3f}  {on_top:.3f}              {spread:.3f}            {held}")
        if arguments.write:
            for name in dict(TABLES)[names[0]]:
                widen(ROOT / "data" / "stacks" / f"{name}.json", spread)


if __name__ == "__main__":
    main()
