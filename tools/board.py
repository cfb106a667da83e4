#!/usr/bin/env python3
"""Compares predictions with measurements for every public row, and writes them as JSON.

  tools/board.py BUILD/tpsim [-o board.json]                       tables of data/
  tools/board.py BUILD/tpsim --runs FILE.csv... [-o board.json]    other tables
  tools/board.py BUILD/tpsim --runs FILE.csv... --left-out         each source left out in turn

Each row has the output of `tpsim validate --json`, its table, source, framework (name, version,
ZeRO stage as stated), GPU, model and date. Summaries by table and by source have the mean error,
the bias, the share of measured times inside their 90 % interval, the Winkler score of the
intervals divided by the measured time, and the mean memory error. They also have the number of
OOM runs that are predicted as OOM (probability above one half), of those whose probability is
below 0.1 %, and of false alarms among the other runs. The last printed line is the mean of the tables' mean errors. docs/accuracy.md is
written from the same rows (tools/write_accuracy.py).

With --left-out each source is priced with the values that constants and spreads have if its rows are
left out of their choice (LEFT_OUT, SPREADS), and figures by source are printed too."""
import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("published_runs", "strangers")
FACTS = ("source", "framework", "gpu", "model", "date")
# By table: constants of stacks that were chosen with its rows in view, and their values without.
# Fragmentation: the value of stacks for which no rows were used. Host time: per launch, the median
# of the runs of docs/validation/h100.md, instead of per block.
PER_LAUNCH = {"host.per_block_op": "32 us", "host.per_block_forward": "0 us", "host.per_block_backward": "0 us"}
FRAGMENTED = ("megatron-lm", "megatron-lm-2024", "megatron-core", "megatron-deepspeed-2023", "deepspeed-zero3", "paddle")
LEFT_OUT = {
    "flagperf": {stack: {"memory.fragmentation": 0.05} for stack in FRAGMENTED} |
                {"megatron-lm-2024": {"memory.fragmentation": 0.05, "parts.tp_overlap": "backward"}},
    "languini": {"pytorch-2024": PER_LAUNCH},
    "torchtitan_h100_rest": {"torchtitan-2024": {"uncalibrated_overhead": 0.1}},
}
# Spreads of software without calibration rows, without each source (tools/interval_spreads.py).
SPREADS = ROOT / "data" / "left_out" / "spreads.json"
SURPRISING = 0.001  # probability of an OOM that is printed as "< 0.1 %"
MISSED = 20  # factor of the Winkler score for misses: 2 / (1 - 0.9)


def public_tables():
    return [path for folder in FOLDERS for path in sorted((ROOT / "data" / folder).glob("*.csv"))]


def report_of(binary, table, options=(), **environment):
    """Returns the JSON output of `tpsim validate` for a table. Ignores exit code 1: no row was
    predicted."""
    done = subprocess.run([binary, "validate", "--runs", str(table), "--json", "--quiet", *options],
                          capture_output=True, text=True, **environment)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def facts_of(table):
    with open(table, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.DictReader(file)]
    return {row.get("id") or f"line-{line}": {key: row.get(key) or "" for key in FACTS}
            for line, row in enumerate(rows, 2)}


def board_rows(binary, table, **environment):
    facts = facts_of(table)
    rows = report_of(binary, table, **environment)["rows"]
    return [{"table": table.stem, **facts.get(row["id"], {}), **row} for row in rows]


def change_stack(file, values):
    stack = json.loads(file.read_text())
    for key, value in values.items():
        *sections, last = key.split(".")
        place = stack
        for section in sections:
            place = place[section]
        place[last] = value
    file.write_text(json.dumps(stack))


def changed_rows(binary, table, changes):
    """Returns the rows of a table, priced with changed values of stacks: {stack: {key: value}}."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        shutil.copytree(ROOT / "data", data, ignore=shutil.ignore_patterns("microbench"))
        for stack, values in changes.items():
            change_stack(data / "stacks" / f"{stack}.json", values)
        return board_rows(binary, table, env={**os.environ, "TPSIM_DATA": str(data)})


def stacks_with(spreads):
    """Returns changes that set the spreads in the stacks that do not state their own."""
    changes = {}
    for path in sorted((ROOT / "data" / "stacks").glob("*.json")):
        stack = json.loads(path.read_text())
        own = {"memory.spread": "spread" in stack["memory"], **{key: key in stack for key in spreads}}
        changes[path.stem] = {key: value for key, value in spreads.items() if not own[key]}
    return changes


def merged(*changes):
    stacks = {}
    for change in changes:
        for stack, values in change.items():
            stacks.setdefault(stack, {}).update(values)
    return stacks


def source_of(row):
    """Returns the repository or the paper that a row is from."""
    return "/".join(row["source"].removeprefix("github.com/").split("@")[0].split("/")[:2])


def rows_left_out(binary, table):
    """Returns the rows of a table, priced with the values of LEFT_OUT and with the spreads without
    the source of each row."""
    without = json.loads(SPREADS.read_text())["without"]
    changes = LEFT_OUT.get(table.stem, {})
    rows = []
    for source in sorted({source_of(facts) for facts in facts_of(table).values()}):
        priced = changed_rows(binary, table, merged(changes, stacks_with(without.get(source, {}))))
        rows += [row for row in priced if source_of(row) == source]
    return rows


def is_priced(row):
    return row["predicted_step_s"] is not None and not row["skipped_because"]


def winkler(row):
    """Returns the Winkler score over the measured time: the interval's width plus 20 times the
    distance of the measured time from the interval."""
    low, high, measured = row["low_s"], row["high_s"], row["measured_step_s"]
    return (high - low + MISSED * max(0, low - measured, measured - high)) / measured


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def figures(rows):
    priced = [row for row in rows if is_priced(row)]
    timed = [row for row in priced if row["error_pct"] is not None]
    memory = [row for row in priced if row["measured_mem_gb"] and row["predicted_mem_gb"]]
    failed = [row for row in priced if row["outcome"] == "oom"]
    ran = [row for row in priced if row["outcome"] != "oom"]
    held = [row["low_s"] <= row["measured_step_s"] <= row["high_s"] for row in timed]
    return {"rows": len(rows), "priced": len(priced), "timed": len(timed),
            "mean_error_pct": mean(abs(row["error_pct"]) for row in timed),
            "bias_pct": mean(row["error_pct"] for row in timed),
            "held_pct": mean(100 * hold for hold in held),
            "winkler": mean(map(winkler, timed)),
            "memory_rows": len(memory),
            "memory_error_pct": mean(100 * abs(row["predicted_mem_gb"] / row["measured_mem_gb"] - 1) for row in memory),
            "surprising_oom": sum(row["p_oom"] < SURPRISING for row in failed),
            "oom_caught": sum(row["p_oom"] > 0.5 for row in failed), "oom": len(failed),
            "false_oom": sum(row["p_oom"] > 0.5 for row in ran), "ran": len(ran)}


def by(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return {name: figures(group) for name, group in groups.items()}


def line_of(name, f):
    cell = lambda value, digits=1: "-" if value is None else f"{value:.{digits}f}"
    return (f"{name[:32]:32s} {f['priced']:4d} of {f['rows']:4d}  error {cell(f['mean_error_pct']):>5s} %  bias "
            f"{cell(f['bias_pct']):>6s} %  held {cell(f['held_pct'], 0):>3s} % of {f['timed']:<4d} winkler "
            f"{cell(f['winkler'], 2):>5s}  memory {cell(f['memory_error_pct']):>5s} % of {f['memory_rows']:<3d} OOM "
            f"{f['oom_caught']}/{f['oom']}, {f['surprising_oom']} below 0.1 %, {f['false_oom']} false of {f['ran']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--runs", nargs="+", type=pathlib.Path, help="tables in place of those of data/")
    parser.add_argument("--left-out", action="store_true", help="each source left out in turn")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="the JSON file to write")
    arguments = parser.parse_args()
    priced = rows_left_out if arguments.left_out else board_rows
    rows = [row for table in arguments.runs or public_tables() for row in priced(arguments.binary, table)]
    for row in rows:
        row["source_name"] = source_of(row)
    tables, sources = by(rows, "table"), by(rows, "source_name")
    for name, all_of_it in tables.items():
        print(line_of(name, all_of_it))
    if arguments.left_out:
        print("by source, each left out in turn:")
        for name, all_of_it in sources.items():
            print(line_of(name, all_of_it))
    print(line_of("all", figures(rows)))
    errors = [f["mean_error_pct"] for f in tables.values() if f["mean_error_pct"] is not None]
    memory = [f["memory_error_pct"] for f in tables.values() if f["memory_error_pct"] is not None]
    if errors:
        held = mean(f["held_pct"] for f in tables.values() if f["timed"])
        print(f"mean of the {len(errors)} tables' mean errors: {mean(errors):.1f} %, held: {held:.0f} %"
              + (f"; of {len(memory)} tables' memory errors: {mean(memory):.1f} %" if memory else ""))
    if arguments.output:
        board = {"version": "tpsim-board/1", "tables": tables, "sources": sources, "all": figures(rows), "rows": rows}
        written = arguments.output.with_suffix(".new")
        written.write_text(json.dumps(board, indent=1) + "\n")
        os.replace(written, arguments.output)


if __name__ == "__main__":
    main()
