#!/usr/bin/env python3
"""Prints the reports of the profile stage of gpu_check.sh as a Markdown table.

Usage: gpu_validation.py validate.jsonl, with one JSON report per line

"""

import json
import sys


def row_of(report):
    plan, spread = report["plan"], report["step_spread"]
    if "rank" in report:
        plan += f", rank {report['rank']}"
        predicted_memory, memory = report["predicted_peak_memory_gib"], report["peak_memory_gib"]
    else:
        fullest = max(report["memory"], key=lambda stage: stage["measured_gib"])
        predicted_memory, memory = fullest["predicted_gib"], fullest["measured_gib"]
    predicted, measured = report["predicted_step_s"], report.get("measured_step_s", report.get("step_s"))
    return (
        f"| {report['model']} | {plan} | {1e3 * predicted:.1f} ms | {1e3 * measured:.1f} ms "
        f"| {100 * spread:.1f} % | {100 * (predicted / measured - 1):+.1f} % "
        f"| {predicted_memory:.2f} GiB | {memory:.2f} GiB | {100 * (predicted_memory / memory - 1):+.2f} % |"
    )


def worst_ops(report, count=6):
    """Returns the kinds of op with the largest prediction errors, in milliseconds per step."""
    rows = [(row, 1e3 * (row["predicted_s"] - row["measured_s"])) for row in report.get("op_kinds", [])]
    rows.sort(key=lambda pair: -abs(pair[1]))
    return ", ".join(f"{row['what']} {off:+.2f} ms" for row, off in rows[:count])


def main():
    reports = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
    print("| model | plan | predicted | measured | spread | error | memory predicted | measured | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for report in reports:
        print(row_of(report))
    print()
    for report in reports:
        rank = f", rank {report['rank']}" if "rank" in report else ""
        print(f"- {report['model']}{rank}: {worst_ops(report)}")


if __name__ == "__main__":
    main()
