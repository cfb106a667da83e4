#!/usr/bin/env python3
"""Fits the sustained share of the clock in GEMMs with random numbers, and prints it by software.

The op samples of the profiles were timed with uninitialized weights, which draw less power. A
second table has times of the same shapes with random weights. `sustained_clock`, the sustained
share of the burst rate at full efficiency (costs/op_cost.h), is fitted to the shapes that both
tables have. GEMMs below 8.6 GFLOP are omitted, because they are too short to reduce the clock.

Usage: tools/sustained_clocks.py"""
import json
import math
import statistics

from profile_fits import DATA, best_clock, rate_in_units, rows_of, slowdown

LEAST_FLOPS = 2 * 1024 * 2048 * 2048
GPU, PROFILE = "A100-SXM4-80GB", "a100-sxm4-80gb"  # other GPUs have no burst table


def shape_of(row):
    return int(row["m"]), int(row["n"]), int(row["k"])


def fitted_clock(pairs):
    """Returns the clock share with the least mean error, and the error. `pairs`: (share of the
    burst rate, time / burst time)."""
    def error(clock):
        return statistics.mean(abs(math.log(slowdown(use, clock) / ratio)) for use, ratio in pairs)
    clock = best_clock(error)
    return clock, error(clock)


def main():
    random = {}
    for row in rows_of("gemm_bf16_random_a100_h100_h200.csv.gz"):
        if row["gpu"] == GPU:
            key = row["source"], row["inputs"], row["timing"]
            random.setdefault(key, {})[shape_of(row)] = float(row["seconds"])
    facts = json.loads((DATA / "profiles" / f"{PROFILE}.json").read_text())
    rate = rate_in_units(facts["device"]["matmul_peak"]) * facts["model"]["matmul_efficiency"]
    burst = {shape_of(row): float(row["seconds"]) for row in rows_of("gemm_a100_sxm4_80gb.csv.gz")}
    for key, times in random.items():
        pairs = []
        for shape, seconds in times.items():
            flops = 2 * math.prod(shape)
            if shape in burst and flops >= LEAST_FLOPS:
                pairs.append((min(1, flops / rate / burst[shape]), seconds / burst[shape]))
        clock, error = fitted_clock(pairs)
        print(f"{' '.join(key):60} {len(pairs):5} products  sustained_clock {clock:.2f}"
              f"  mean error {100 * error:.1f} %")


if __name__ == "__main__":
    main()
