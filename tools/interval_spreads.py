#!/usr/bin/env python3
"""Sets residual_spread of every stack in data/stacks, which determines the 90 % intervals.

The own spread of a stack is that of its calibration rows, widened by Student's t for a small
sample. Test rows have larger errors, because the constants were fitted to calibration rows. An
additional spread is therefore fitted so that intervals contain 90 % of the test rows, with equal
weight for each table. A stack's own test rows are excluded from this fit. Stacks without
calibration rows use the median of the own spreads of other stacks.

Usage: tools/interval_spreads.py BUILD/tpsim [--write]"""
import json
import math
import os
import pathlib
import re
import shutil
import sys
import tempfile

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


def main():
    binary = sys.argv[1]
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
        if "--write" in sys.argv:
            for name in dict(TABLES)[names[0]]:
                widen(ROOT / "data" / "stacks" / f"{name}.json", spread)


if __name__ == "__main__":
    main()
