"""Samples and fitted constants of profiles, from the tables of data/microbench/. For build_profiles.py and
build_newer_profiles.py.
"""

import csv
import gzip
import hashlib
import math
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
AICONFIGURATOR = "ai-dynamo/aiconfigurator at 095f58a (Apache-2.0), systems/data"

# Maximum number of GEMMs in a profile: shapes of transformer layers, and other shapes.
LARGE_PRODUCTS = 1700
OTHER_PRODUCTS = 800
FITTED_PRODUCTS = 500
HELD_OUT_LARGE = 160
HELD_OUT_OTHER = 80

# Flash attention: the shapes of training that are sampled, and the sizes of the samples.
FLASH_HEAD_DIMS = (64, 128)
FLASH_SAMPLES = 700
LEAST_FLASH_TOKENS = 256
HELD_OUT_FLASH = 120

# Constants of the GEMM fit: (start value, first step, minimum, maximum).
FITTED = {
    "matmul_efficiency": (0.90, 0.05, 0.4, 1.0),
    "wave_rounding": (0.5, 0.4, 0.0, 1.0),
    "small_tile_exponent": (0.2, 0.15, 0.0, 1.0),
    "epilogue_exposed": (0.7, 0.3, 0.0, 1.5),
    "traffic_efficiency": (0.75, 0.1, 0.4, 1.0),
    "matmul_latency": (2.8e-6, 0.8e-6, 0.5e-6, 10e-6),
}
LARGEST_TILE = (128, 256)  # largest tile of cuBLAS on Ampere and Hopper

# Flags of MatmulVariant.
TRANSPOSE_A, TRANSPOSE_B, ACCUMULATE, OUTPUT_FLOAT32 = 1, 2, 4, 8


def rows_of(name):
    with gzip.open(DATA / "microbench" / name, "rt", newline="") as file:
        return list(csv.DictReader(file))


def rate_in_units(text):
    """Converts "312 TFLOP/s" or "2039 GB/s" to base units."""
    number, unit = text.split(" ")
    return float(number) * {"T": 1e12, "G": 1e9}[unit[0]]


def order_of(key):
    """Sort key of a shuffle that is always the same."""
    return hashlib.sha256(" ".join(map(str, key)).encode()).digest()


class MatmulBound:
    """The lower bound of costs/matmul_model.cc for the time of forward GEMMs in bf16."""

    def __init__(self, gpu):
        self.processors = gpu["device"]["processors"]
        self.peak = rate_in_units(gpu["device"]["matmul_peak"])
        self.bandwidth = rate_in_units(gpu["device"]["memory_bandwidth"])
        a, b = LARGEST_TILE
        self.tiles = ((a, b), (b, a), (a, b // 2), (a // 2, b), (b, a // 2), (a // 2, b // 2),
                      (b // 2, a // 2), (a // 2, b // 4))

    def seconds(self, shape, constants):
        m, n, k = shape
        memory = self.bandwidth * constants["traffic_efficiency"]
        least = math.inf
        for a, b in self.tiles:
            area = a * b
            rate = (constants["matmul_efficiency"] * self.peak
                    * (area / (LARGEST_TILE[0] * LARGEST_TILE[1])) ** constants["small_tile_exponent"])
            per_split = math.ceil(m / a) * math.ceil(n / b) / self.processors
            epilogue = constants["epilogue_exposed"] * 2 * area * self.processors / memory
            for splits in (1, 2, 4, 8, 16):
                if splits > 1 and (per_split > 4 or k < splits * 512):
                    break
                exact = per_split * splits
                waves = 1 if exact < 1 else exact + constants["wave_rounding"] * (math.ceil(exact) - exact)
                depth = math.ceil(k / splits / 32) * 32
                compute = waves * (2 * area * self.processors * depth / rate + epilogue)
                if splits > 1:
                    compute += 4 * splits * m * n / memory
                least = min(least, compute)
        traffic = 2 * (m * k + n * k + m * n) / memory
        return constants["matmul_latency"] + max(least, traffic)


def is_large(shape):
    m, n, k = shape
    return m >= 512 and n >= 1024 and k >= 1024


def aligned(samples):
    """Returns the rows with m <= 4 or m a multiple of 8, shuffled. Tables repeat shapes with other m."""
    return sorted((s for s in samples if s[0][0] % 8 == 0 or s[0][0] <= 4), key=lambda s: order_of(s[0]))


def split_products(samples):
    """Splits the rows into those of the profile and those held out."""
    rows = aligned(samples)
    large = [s for s in rows if is_large(s[0])]
    other = [s for s in rows if not is_large(s[0])]
    kept_large = min(LARGE_PRODUCTS, 2 * len(large) // 3)
    return (large[:kept_large] + other[:OTHER_PRODUCTS],
            large[kept_large:][:HELD_OUT_LARGE] + other[OTHER_PRODUCTS:][:HELD_OUT_OTHER])


def mean_error(bound, constants, samples):
    """Returns the mean |log error|; GEMMs with a side below 512 have a quarter of the weight."""
    total = weights = 0
    for shape, seconds in samples:
        weight = 1 if min(shape) >= 512 else 0.25
        total += weight * abs(math.log(bound.seconds(shape, constants) / seconds))
        weights += weight
    return total / weights


def fit_matmul(gpu, kept):
    """Fits the constants of the bound by coordinate descent with decreasing steps."""
    bound = MatmulBound(gpu)
    samples = sorted(kept, key=lambda s: order_of(s[0][::-1]))[:FITTED_PRODUCTS]
    constants = {name: first for name, (first, _, _, _) in FITTED.items()}
    steps = {name: step for name, (_, step, _, _) in FITTED.items()}
    best = mean_error(bound, constants, samples)
    for _ in range(14):
        for name, (_, _, low, high) in FITTED.items():
            for step in (steps[name], -steps[name]):
                trial = dict(constants, **{name: min(high, max(low, constants[name] + step))})
                error = mean_error(bound, trial, samples)
                if error < best:
                    best, constants = error, trial
                    break
            else:
                steps[name] *= 0.6
    return {name: float(f"{value:.3g}") for name, value in constants.items()}


def report_fit(name, gpu, constants, held_out):
    bound = MatmulBound(gpu)
    print(f"{name}: {constants}; without neighbours, on rows that the profile does not hold:")
    for title, wanted in (("m >= 512, n, k >= 1024", is_large), ("others", lambda s: not is_large(s))):
        rows = [s for s in held_out if wanted(s[0])]
        errors = [math.log(bound.seconds(shape, constants) / t) for shape, t in rows]
        sizes = sorted(map(abs, errors))
        print(f"  {title:<24} {len(sizes):>6} rows  |error| mean {statistics.fmean(sizes):6.1%} "
              f"median {statistics.median(sizes):6.1%}  90th percentile "
              f"{sizes[int(0.9 * len(sizes))]:6.1%}  bias {statistics.fmean(errors):+6.1%}")


def slowdown(use, clock):
    """Returns the slowdown of a GEMM at a reduced clock. `use`: its share of the peak rate in a
    burst. `clock`: sustained share of the clock (costs/op_cost.h)."""
    exponent = 8  # kPowerExponent of costs/op_cost.cc
    return (1 + use**exponent * (clock**-exponent - 1)) ** (1 / exponent)


def best_clock(error):
    """Returns the share of the clock with the least error, in steps of 0.01."""
    return min((i / 100 for i in range(60, 101)), key=error)


def op_group(op, variant, dims, samples, dtype="bf16"):
    return {"op": op, "variant": variant, "dtype": dtype, "dims": dims, "samples": samples}


def split_flash(gpu, rows):
    """Returns the median seconds by (batch, seq, heads, kv_heads, head_dim) of training shapes,
    in two parts: for the profile, and held out."""
    times = {}
    for row in rows:
        key = tuple(int(row[column]) for column in ("batch", "seq", "heads", "kv_heads", "head_dim"))
        wanted = (row["gpu"] == gpu["gpu"] and row["kernel"] == gpu["flash_kernel"]
                  and key[1] >= LEAST_FLASH_TOKENS and key[4] in FLASH_HEAD_DIMS)
        if wanted:
            times.setdefault(key, []).append(float(row["seconds"]))
    order = sorted(times, key=order_of)
    kept, held_out = order[:FLASH_SAMPLES], order[FLASH_SAMPLES:][:HELD_OUT_FLASH]
    return tuple({key: statistics.median(times[key]) for key in sorted(keys)}
                 for keys in (kept, held_out))


def flash_efficiency(gpu, samples):
    """Returns the median share of the peak over large shapes. Causal attention counts half the
    FLOPs. The ramp for short sequences of costs/flash_model.cc is divided out."""
    peak = rate_in_units(gpu["device"]["matmul_peak"])
    shares = [2 * batch * heads * seq * seq * head_dim / seconds / peak * (seq + 600) / seq
              for (batch, seq, heads, _, head_dim), seconds in samples.items()
              if 2048 <= seq <= 16384 and head_dim == 128 and batch * heads >= 16]
    return round(statistics.median(shares), 3)


def collective_groups(gpu, rows):
    """Returns the half-precision collectives; integers use other kernels and benefit less from NVLS."""
    times = {}
    for row in rows:
        if row["gpu"] != gpu["gpu"] or row["dtype"] != "half":
            continue
        collective = row["collective"].replace("alltoall", "all_to_all")
        group = times.setdefault((collective, int(row["ranks"])), {})
        group.setdefault(int(row["bytes"]), []).append(float(row["seconds"]))
    return groups_by_collective({key: {size: statistics.median(t) for size, t in group.items()}
                                 for key, group in times.items()})


def groups_by_collective(times):
    """Converts {(collective, ranks): {size: seconds}} to the groups of a profile."""
    return [{"collective": collective, "ranks": ranks, "samples": [[size, t] for size, t in sorted(group.items())]}
            for (collective, ranks), group in sorted(times.items())]


def seconds_text(seconds):
    return f"{round(seconds * 1e6, 2):g} us"


BOUND = ("wave_rounding", "small_tile_exponent", "epilogue_exposed", "traffic_efficiency")


def members_of_fit(fit, **more):
    """Returns the fitted GEMM constants as members of "model", in the order of the file."""
    return {"matmul_efficiency": fit["matmul_efficiency"], "tile_m": LARGEST_TILE[0], "tile_n": LARGEST_TILE[1],
            "matmul_latency": seconds_text(fit["matmul_latency"]),
            "matmul": {key: fit[key] for key in BOUND} | more}


def profile_head(name, source, provenance="published"):
    return {"format": "tpsim-profile/1", "name": name, "source": source, "date": "not stated",
            "provenance": provenance}


def model_of(gpu, fit, flash, fitted_on=FITTED_PRODUCTS):
    constants = {key: value for key, (value, _) in gpu["published"].items()}
    sources = [f"{key}: {source}" for key, (_, source) in gpu["published"].items()]
    if flash:
        constants["flash_forward_efficiency"] = flash_efficiency(gpu, flash)
        sources.append("flash_forward_efficiency: median of the samples below with 2048 to 16384 "
                       "tokens, head_dim 128 and at least 16 heads in the batch, without the ramp")
        constants["flash_backward_efficiency"] = round(
            constants["flash_forward_efficiency"] * constants.pop("flash_backward_ratio"), 3)
    fitted = (f"{', '.join(FITTED)}: fitted by tools/build_profiles.py on {fitted_on} of the "
              "samples below")
    of_products = ("unaligned_rate", "unaligned_batched_rate", "nn_layout_factor", "tn_layout_factor")
    of_others = ("sustained_clock", "streaming_efficiency", "reduction_efficiency",
                 "flash_forward_efficiency", "flash_backward_efficiency")
    return {"source": "; ".join([fitted] + sources), "provenance": "published",
            **members_of_fit(fit, **{key: constants[key] for key in of_products}),
            **{key: constants[key] for key in of_others},
            "kernel_latency": seconds_text(constants["kernel_latency"])}
