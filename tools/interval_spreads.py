#!/usr/bin/env python3
"""Sets residual_spread of every stack in data/stacks, which determines the 90 % intervals.

The own spread of a stack is that of its calibration rows, widened by Student's t for a small
sample. Test rows have larger errors, because the constants were fitted to calibration rows. An
additional spread is therefore fitted so that intervals contain 90 % of the test rows, with equal
weight for each table. A stack's own test rows are excluded from this fit. Stacks without
calibration rows use the median of the own spreads of other stacks.

Software without calibration rows has the spreads in core/software/stack_spec.h, by what is unknown of a
run: nothing else (residual_spread), or that no stack describes its program or one of its settings, or no run
of such software is of its GPU (other_runs). They are the scales of Student's t with 4 degrees of freedom that
make the errors most likely, in the tables of data/strangers, data/left_out and --runs, each source counting the same. Memory has one spread. With --write the spreads without each source go to
data/left_out/spreads.json, for `tools/board.py --left-out`.

Usage: tools/interval_spreads.py BUILD/tpsim [--write] [--runs TABLE.csv...]"""
import argparse
import json
import math
import os
import pathlib
import re
import shutil
import tempfile

from board import LEFT_OUT, SPREADS, changed_rows, is_priced, merged, source_of, stacks_with
from write_accuracy import ROOT, rows_of, validated

NORMAL_90 = 1.645
DEGREES = 4  # of freedom of the errors; 4 is the most likely of 2, 3, 4, 6, 10, 100
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


def spread_keys(**values):
    """Returns the spreads of software without calibration rows, 0 where not given."""
    return {"residual_spread": 0.0, "other_runs": 0.0} | values


class UnseenRow:
    """A row of software without calibration rows: its log error, the variance of its interval
    without the spreads, and whether each of SPREAD_KINDS applies."""

    def __init__(self, row, with_spread):
        self.source = source_of(row)
        self.applies = [is_wider(row, other) for other in with_spread]
        half = math.log(row["high_s"] / row["predicted_step_s"])
        self.own = (half / NORMAL_90) ** 2
        self.error = math.log(row["measured_step_s"] / row["predicted_step_s"])


SPREAD_KINDS = ("residual_spread", "other_runs")


def is_wider(row, other):
    return other["high_s"] > row["high_s"] * (1 + 1e-9)


def unseen_rows(binary, tables):
    """Returns rows with step times and log errors of memory by source. Each table is priced with
    the values of LEFT_OUT in tools/board.py."""
    rows, memory = [], {}
    for table in tables:
        base, *each = (
            changed_rows(binary, table, merged(LEFT_OUT.get(table.stem, {}), stacks_with(spread_keys(**values))))
            for values in ({}, *({kind: 1.0} for kind in SPREAD_KINDS)))
        for row, *others in zip(base, *each):
            if not is_priced(row) or not any(is_wider(row, other) for other in others):
                continue
            if row["error_pct"] is not None:
                rows.append(UnseenRow(row, others))
            if row["measured_mem_gb"]:
                memory.setdefault(source_of(row), []).append(math.log(row["measured_mem_gb"] / row["predicted_mem_gb"]))
    return rows, memory


def by_source(rows):
    sources = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    return sources


def cost(sources, variances):
    """Returns the mean over sources of the negative log likelihood of Student's t with DEGREES
    degrees of freedom; each source counts the same."""
    total = 0.0
    for rows in sources.values():
        for row in rows:
            variance = row.own + sum(v for v, applies in zip(variances, row.applies) if applies)
            total += (0.5 * math.log(variance) + (DEGREES + 1) / 2 * math.log1p(row.error ** 2 / (DEGREES * variance))) / len(rows)
    return total / len(sources)


def lowest(function, low, high):
    """Golden-section search."""
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-3:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return (low + high) / 2


def fitted_variances(sources):
    """Returns the variance that each unknown adds to that of the interval's other causes."""
    logs = [math.log(0.1 ** 2)] * len(SPREAD_KINDS)
    change = 1.0
    while change > 0.01:
        before = list(logs)
        for k in range(len(logs)):
            def along(value, k=k):
                return cost(sources, [math.exp(v) for v in (*logs[:k], value, *logs[k + 1:])])
            logs[k] = lowest(along, math.log(1e-8), math.log(4))
        change = max(abs(a - b) for a, b in zip(before, logs))
    return [math.exp(v) for v in logs]


def spreads_of(sources):
    """Returns the spread for each of SPREAD_KINDS. The half width of an interval is NORMAL_90 times
    its spread, that of the fitted distribution is its own 90 % quantile: the ratio of both is part
    of the first spread for the other causes too. The mean of few sources widens each by 1 + 1/n."""
    variances = fitted_variances(sources)
    ratio = (STUDENT_90[DEGREES - 1] / NORMAL_90) ** 2
    counts = [sum(any(row.applies[k] for row in rows) for rows in sources.values()) for k in range(len(SPREAD_KINDS))]
    own = [sum(row.own for row in rows) / len(rows) for rows in sources.values() if any(row.applies[0] for row in rows)]
    added = [(ratio - 1) * sum(own) / len(own), 0, 0]
    return [math.sqrt((ratio * v + more) * (1 + 1 / max(1, n))) for v, more, n in zip(variances, added, counts)]


def memory_spread(sources):
    """Returns the spread of memory errors in the same way; they have no other causes."""
    def of(log_variance):
        rows = [[type("Row", (), {"own": 0, "applies": [True], "error": e}) for e in errors] for errors in sources.values()]
        return cost(dict(enumerate(rows)), [math.exp(log_variance)])
    variance = math.exp(lowest(of, math.log(1e-8), math.log(4)))
    return STUDENT_90[DEGREES - 1] / NORMAL_90 * math.sqrt(variance * (1 + 1 / len(sources)))


def rounded(values):
    return dict(zip((*SPREAD_KINDS, "memory.spread"), (round(value, 3) for value in values)))


def unseen_spreads(rows, memory):
    """Returns the spreads of all rows, and by source those without its rows."""
    sources = by_source(rows)
    def all_but(left_out):
        return rounded((*spreads_of({name: one for name, one in sources.items() if name != left_out}),
                        memory_spread({name: one for name, one in memory.items() if name != left_out})))
    return all_but(None), {source: all_but(source) for source in sorted({*sources, *memory})}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", nargs="+", type=pathlib.Path, default=[], help="more tables of such software")
    arguments = parser.parse_args()
    binary = arguments.binary
    tables = [*sorted((ROOT / "data" / "strangers").glob("*.csv")), *sorted((ROOT / "data" / "left_out").glob("*.csv")),
              *arguments.runs]
    spreads, without = unseen_spreads(*unseen_rows(binary, tables))
    print("software without calibration rows (core/software/stack_spec.h):", spreads)
    for source, values in without.items():
        print(f"  without {source:40s}", *(f"{value:.3f}" for value in values.values()))
    if arguments.write:
        SPREADS.write_text(json.dumps({"format": "tpsim-spreads/1", "without": without}, indent=1) + "\n")
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
