#!/usr/bin/env python3
"""Builds the profiles of newer_devices.py from data/microbench/, and adds the 8-bit samples to
h100-sxm and h200.

  tools/build_newer_profiles.py            writes the profiles, prints the errors of the fitted constants
  tools/build_newer_profiles.py --check    fails if a file differs from what would be written

One shape in five of every table, selected by its hash, is held out from the profile and the fits.
Some of the held-out shapes are written to held_out_newer.csv. In the 8- and 4-bit tables
the GEMM time includes the cast of x. The measured time of the cast is subtracted, because the
simulator prices casts separately.
"""

import csv
import json
import math
import statistics

from build_profiles import add_held_out, text_of, write_or_check
from newer_devices import BEST_SUSTAINED, DATASHEET, MEASURED
from profile_fits import (AICONFIGURATOR, DATA, FITTED, TRANSPOSE_B, MatmulBound, aligned,
                          best_clock, fit_matmul, groups_by_collective, is_large, members_of_fit,
                          op_group, order_of, profile_head, rate_in_units, rows_of, slowdown)

KEPT = {"bf16": (700, 150), "fp8": (350, 60), "fp8_block": (350, 60), "nvfp4": (350, 60)}
HELD_OUT = 60  # held-out rows per GPU and dtype
LEAST_PRODUCT = 0.35  # minimum share of a timed cast + GEMM that must remain for the GEMM
# Bytes read and written per element, relative to a cast to fp8 with a per-tensor scale.
CAST_BYTES = {"fp8_block": 1.0, "nvfp4": (2 + 0.5625) / 3}
TYPES = {"bf16": "bf16", "fp8": "fp8", "fp8_block128": "fp8_block", "nvfp4": "nvfp4"}


def facts_of(gpu):
    with open(DATA / "microbench" / "gpus.csv", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["gpu"] == gpu["facts"])
    narrow = row["bf16_tflops"] == ""
    device = {
        "name": gpu["smi"],
        "source": row["sources"],
        "memory": gpu.get("memory") or f"{int(row['memory_bytes']) // 2**20} MiB",
        "processors": int(row["processors"]),
        "matmul_peak": f"{float(row['fp16_tflops' if narrow else 'bf16_tflops']):g} TFLOP/s",
        "matmul_dtype": "fp16" if narrow else "bf16",
    }
    if row["fp8_tflops"]:
        device["fp8_peak"] = f"{float(row['fp8_tflops']):g} TFLOP/s"
    if gpu.get("block_scales") or gpu.get("mxfp8"):
        device["mxfp8_peak"] = device["fp8_peak"]
    if gpu.get("block_scales"):
        device["nvfp4_peak"] = f"{float(row['fp4_tflops']):g} TFLOP/s"
    device["vector_peak"] = f"{float(row['fp32_tflops']):g} TFLOP/s"
    device["memory_bandwidth"] = gpu.get("bandwidth") or f"{float(row['memory_GBps']):g} GB/s"
    device["asynchronous"] = True
    return device


class Casts:
    """Time of a cast to fp8 in seconds by number of elements, interpolated between measurements."""

    def __init__(self, rows, gpu):
        points = {}
        for row in rows:
            if row["gpu"] == gpu:
                elements = int(row["m"]) * int(row["k"])
                cast, amax = float(row["cast_seconds"]), float(row["amax_seconds"])
                points.setdefault(elements, []).append((cast, cast + amax))
        self.points = sorted((n, *(statistics.median(c) for c in zip(*v))) for n, v in points.items())

    def seconds(self, elements, column):
        least, most = self.points[0], self.points[-1]
        if elements <= least[0]:
            return least[column]
        if elements >= most[0]:
            return most[column] * elements / most[0]
        above = next(i for i, p in enumerate(self.points) if p[0] > elements)
        (x0, y0), (x1, y1) = ((math.log(p[0]), math.log(p[column]))
                              for p in self.points[above - 1:above + 1])
        return math.exp(y0 + (y1 - y0) * (math.log(elements) - x0) / (x1 - x0))

    def rounding(self, kind, shape):
        elements = shape[0] * shape[2]
        if kind == "fp8":  # per-tensor scale: one pass for the amax, one for the cast
            return self.seconds(elements, 2)
        return CAST_BYTES[kind] * self.seconds(elements, 1)


def products_of(rows, gpu, casts):
    """Returns the GEMM time in seconds by dtype and shape, using the fastest kernel measured."""
    times = {}
    for row in rows:
        kind = TYPES.get(row["dtype"])
        if row["gpu"] != gpu or kind is None or row["layout"] != "TN" or row["timing"] == "sustained":
            continue
        shape = tuple(int(row[c]) for c in "mnk")
        seconds = float(row["seconds"])
        if "cast" in row["includes"]:
            left = seconds - casts.rounding(kind, shape)
            if left < LEAST_PRODUCT * seconds:
                continue
            seconds = left
        best = times.setdefault(kind, {})
        best[shape] = min(seconds, best.get(shape, math.inf))
    return {kind: list(best.items()) for kind, best in times.items()}


def is_held_out(shape):
    return order_of(("held out", *shape))[0] % 5 == 0


def split(samples, kind):
    rows = aligned(samples)
    kept = [s for s in rows if not is_held_out(s[0])]
    large = [s for s in kept if is_large(s[0])][:KEPT[kind][0]]
    other = [s for s in kept if not is_large(s[0])][:KEPT[kind][1]]
    left = [s for s in rows if is_held_out(s[0]) and min(s[0]) >= 512]
    return large + other, left[:HELD_OUT]


def group(kind, samples):
    return op_group("matmul", TRANSPOSE_B, 4,
                    sorted([1, *shape, float(f"{t:.5g}")] for shape, t in samples), kind)


def flash_dims(batch, seq, heads, kv_heads, qk_dim, v_dim, window):
    """Returns the dimensions in the order of OpKey. Number of keys and window only occur if
    there is a window or a different value width."""
    dims = [batch, seq, heads, kv_heads, qk_dim]
    if window and window < seq or qk_dim != v_dim:
        dims += [seq, min(window or seq, seq)]
    return dims + ([v_dim] if qk_dim != v_dim else [])


def grouped_by_dims(op, samples):
    return [op_group(op, 0, dims, sorted([*s, t] for s, t in samples if len(s) == dims))
            for dims in sorted({len(s) for s, _ in samples})]


def flash_groups(rows, gpu, ops=("flash_forward", "flash_backward")):
    """Returns samples of cuDNN's causal attention: grouped-query, sliding-window and latent
    attention."""
    groups = []
    for op in ops:
        column = op.removeprefix("flash_") + "_seconds"
        samples = [(flash_dims(*(int(r[c]) for c in ("batch", "q_seq", "heads", "kv_heads", "qk_head_dim",
                                                     "v_head_dim")), int(r["window"] or 0)),
                    float(r[column])) for r in rows
                   if r["gpu"] == gpu and r["dtype"] == "bf16" and r["causal"] == "1"
                   and r["backend"] == "cudnn" and r[column] and r["q_seq"] == r["kv_seq"]]
        groups += grouped_by_dims(op, samples)
    return groups


LATENT_KEPT = 60
LATENT_SOURCES = {"B200": "sglang-0.5.14"}  # faster than trtllm on B200; other GPUs use trtllm


def latent_groups(rows, gpu, held_out, name):
    """Returns samples of forward attention with key width 192 and value width 128, for GPUs
    without such shapes in other tables."""
    source = LATENT_SOURCES.get(gpu, "trtllm-1.3.0rc20")
    best = {}
    for r in rows:
        shape = tuple(int(r[c]) for c in ("batch", "seq", "heads"))
        if r["gpu"] == gpu and r["source"] == source and r["timing"] == "burst" and math.prod(shape) >= 2**16:
            best[shape] = min(float(r["seconds"]), best.get(shape, math.inf))
    shapes = sorted(best, key=order_of)
    kept = [s for s in shapes if not is_held_out(s)][:LATENT_KEPT]
    held_out += [[name, *s, float(f"{best[s]:.5g}")] for s in sorted(filter(is_held_out, shapes))]
    return grouped_by_dims("flash_forward", [(flash_dims(b, s, h, h, 192, 128, 0), float(f"{best[b, s, h]:.5g}"))
                                             for b, s, h in kept])


def collective_groups(rows, gpu):
    newest = max((r["nccl"] for r in rows if r["gpu"] == gpu and r["dtype"] == "half"), default="")
    groups = {}
    for r in rows:
        if r["gpu"] == gpu and r["dtype"] == "half" and r["nccl"] == newest:
            groups.setdefault((r["collective"], int(r["gpus"])), {})[int(r["bytes"])] = float(r["seconds"])
    return groups_by_collective(groups)


# Pairs of tables of the same software, timed in short bursts and continuously for a second, to fit
# the sustained clock.
CLOCK_PAIRS = {"B200": ("trtllm-1.3.0rc20", "trtllm-1.3.0rc15"),
               "GB200": ("trtllm-1.3.0rc20", "trtllm-1.3.0rc17")}


def slowed(burst, shape, rate, clock):
    return burst * slowdown(min(1.0, 2 * math.prod(shape) / rate / burst), clock)


def fit_clock(rows, gpu, types, rates, casts):
    """Fits the sustained clock: the least |log error| on GEMMs that both tables have."""
    pairs = []
    for kind in types:
        burst, sustained = ({tuple(int(r[c]) for c in "mnk"): float(r["seconds"]) for r in rows
                             if r["gpu"] == gpu and r["source"] == source and r["dtype"] == kind}
                            for source in CLOCK_PAIRS[gpu])
        for shape in burst.keys() & sustained.keys():
            off = casts.rounding(kind, shape) if kind != "bf16" else 0
            if burst[shape] - off > LEAST_PRODUCT * burst[shape] and is_large(shape):
                pairs.append((burst[shape] - off, sustained[shape] - off, shape, rates[kind]))

    def error(clock):
        return statistics.fmean(abs(math.log(slowed(b, shape, rate, clock) / s))
                                for b, s, shape, rate in pairs)
    clock = best_clock(error)
    print(f"{gpu} {'+'.join(types)}: sustained clock {clock}, mean |error| {error(clock):.1%} of "
          f"{len(pairs)} pairs, {error(1.0):.1%} without")
    return clock


def clocks_of(gpu, device, efficiency, tables):
    casts = Casts(tables["casts"], gpu)
    rates = {kind: efficiency * rate_in_units(device[peak]) for kind, peak in
             (("bf16", "matmul_peak"), ("fp8", "fp8_peak"), ("nvfp4", "nvfp4_peak"))}
    clocks = {"sustained_clock": fit_clock(tables["products"], gpu, ["bf16"], rates, casts)}
    if gpu == "GB200":
        clocks["narrow_sustained_clock"] = fit_clock(tables["products"], gpu, ["fp8", "nvfp4"], rates, casts)
    return clocks


def report(name, kept, left, device, fit):
    bound = MatmulBound({"device": device})
    errors = sorted(abs(math.log(bound.seconds(s, fit) / t)) for s, t in left)
    if errors:
        print(f"{name}: {fit}; bound alone on {len(errors)} rows left out: median "
              f"{errors[len(errors) // 2]:.1%}")


def model_of(gpu, fit, fitted_on):
    constants = dict(gpu["model"])
    model = {"source": gpu["sources"], "provenance": "published"}
    if fit:
        model["source"] = f"{', '.join(FITTED)}: fitted on {fitted_on} of the samples below; {gpu['sources']}"
        model |= members_of_fit(fit)
    return model | constants


def measured_profile(gpu, tables, held_out):
    device = facts_of(gpu)
    products = products_of(tables["products"], gpu["table"], Casts(tables["casts"], gpu["table"])
                           if any(r["gpu"] == gpu["table"] for r in tables["casts"]) else None)
    ops, fit, fitted_on = [], None, 0
    for kind, samples in sorted(products.items(), key=lambda item: list(KEPT).index(item[0])):
        kept, left = split(samples, kind)
        held_out += [[gpu["name"], kind, *shape, float(f"{t:.5g}")] for shape, t in sorted(left)]
        ops.append(group(kind, kept))
        if kind == "bf16":
            fit = fit_matmul({"device": device}, kept)
            fitted_on = min(500, len(kept))
            report(gpu["name"], kept, left, device, fit)
    if gpu["table"] in CLOCK_PAIRS:
        gpu = dict(gpu, model=gpu["model"] | clocks_of(gpu["table"], device, fit["matmul_efficiency"], tables))
    if "flash" in gpu:
        ops += flash_groups(tables["flash"], gpu["flash"])
    elif any(r["gpu"] == gpu["table"] for r in tables["latent"]):
        ops += latent_groups(tables["latent"], gpu["table"], tables["latent_held_out"], gpu["name"])
    source = ("ROCm/aiter, hipBLASLt and Primus: products by their tuned kernels"
              if gpu["name"].startswith("mi") else
              f"{AICONFIGURATOR}: products timed in CUDA graphs with random operands, NCCL "
              "collectives in half precision")
    source += (f"; attention of cuDNN, {gpu['flash']}: NVIDIA/cudnn-frontend" if "flash" in gpu else
               "; latent attention, forward" if ops[-1]["op"] == "flash_forward" else "")
    return {**profile_head(gpu["name"], source), "device": device,
            "model": model_of(gpu, fit, fitted_on), "burst_clocks": gpu.get("burst_clocks", True),
            "ops": ops, **({"link": gpu["link"]} if "link" in gpu else {}),
            "collectives": collective_groups(tables["nccl"], gpu["table"])
                           if gpu.get("collectives", True) else []}


def datasheet_profile(gpu, profiles, tables):
    device = facts_of(gpu)
    profile = profile_head(gpu["name"], "datasheet; no op was timed on this GPU here", "datasheet")
    profile["device"] = device
    ops, machine = [], {"collectives": []}
    if "like" in gpu:
        sibling = profiles[gpu["like"]]
        model = sibling["model"] | {"source": gpu["sources"], "provenance": "datasheet"} | gpu.get("model", {})
        if gpu.get("same_chip"):
            ops, machine = sibling["ops"], {key: sibling[key] for key in ("link", "collectives")}
            profile["source"] = f"the samples of {gpu['like']}, the same chip with other links"
    else:
        model = {"source": gpu["sources"], "provenance": "datasheet"} | gpu["model"]
    if "table" in gpu:
        products = products_of(tables["products"], gpu["table"], None)
        ops = [group(kind, split(samples, kind)[0]) for kind, samples in sorted(products.items())
               if kind != "bf16"]
        profile["source"] = "datasheet; products with blocks of 8 bits: ROCm/aiter (MIT)"
    return profile | {"model": model, "burst_clocks": bool(gpu.get("like")), "ops": ops} | machine


def clock_of_best(samples, rate, best):
    """Returns the clock at which the fastest GEMM of the burst samples has the best published
    sustained rate."""
    def fastest(clock):
        return max(2 * math.prod(s) / slowed(t, s, rate, clock) for s, t in samples if max(s) <= 20480)
    return best_clock(lambda clock: abs(fastest(clock) - best))


FITTED_WORDS = ", ".join(FITTED)
CLOCK_SOURCE = ("sustained_clock, narrow_sustained_clock: the fastest sample with sides up to 20480 comes out "
                "at the rate that the best shape sustains in bf16 and in fp8, stas00/ml-engineering "
                "compute/accelerator/README.md")
HOPPER_MATMUL = {"unaligned_rate": 0.68, "unaligned_batched_rate": 0.68, "split_sum_cost": 0.1}
SPLIT_SOURCE = ("split_sum_cost: fast accumulation makes products of 8 bits 1.1 to 1.2 times as fast "
                "(pytorch/ao issue 2377), of which the lower end, as clocks give some of it back, and the "
                "samples are of fast accumulation (cuBLASLt as TensorRT-LLM calls it)")


def hopper_profile(name, table, tables, held_out):
    """Returns the existing profile with the GEMMs of these tables (random operands, 16 and 8
    bits)."""
    profile = json.loads((DATA / "profiles" / f"{name}.json").read_text())
    products = products_of(tables["products"], table, Casts(tables["casts"], table))
    profile["ops"] = [group for group in profile["ops"]
                      if group["op"] == "flash_forward" and group["dims"] == 5]
    profile["ops"] += latent_groups(tables["latent"], table, tables["latent_held_out"], name)
    if name == "h200":
        profile["ops"] += flash_groups(tables["flash"], "H200", ["flash_backward"])
    clocks, best, fit = {}, BEST_SUSTAINED[name], None
    for kind in reversed([kind for kind in KEPT if kind in products]):
        kept, left = split(products[kind], kind)
        held_out += [[name, kind, *shape, float(f"{t:.5g}")] for shape, t in sorted(left)]
        profile["ops"].insert(0, group(kind, kept))
        if kind == "bf16":
            fit = fit_matmul(profile, kept)
            report(name, kept, left, profile["device"], fit)
    for kind, peak, clock in (("bf16", "matmul_peak", "sustained_clock"),
                              ("fp8", "fp8_peak", "narrow_sustained_clock")):
        rate = fit["matmul_efficiency"] * rate_in_units(profile["device"][peak])
        clocks[clock] = clock_of_best(products[kind], rate, best[kind])
        print(f"{name} {kind}: {clock} {clocks[clock]}")
    others = [part for part in profile["model"]["source"].split("; ")
              if not part.startswith((FITTED_WORDS, "sustained_clock", "narrow_sustained_clock",
                                        "split_sum_cost"))]
    source = "; ".join([f"{FITTED_WORDS}: fitted on 500 of the samples below", CLOCK_SOURCE, SPLIT_SOURCE, *others])
    fitted = model_of({"name": name, "model": clocks, "sources": ""}, fit, 500)
    profile["model"] = fitted | {key: value for key, value in profile["model"].items()
                                 if key not in fitted} | {"source": source}
    profile["model"]["matmul"] |= HOPPER_MATMUL
    profile["source"] = (f"{AICONFIGURATOR}: products y = x W^T timed in CUDA graphs with random operands, "
                         "NCCL collectives in half precision on one node"
                         + ("; vllm_flash_attn_fa3 forward" if name == "h200" else "")
                         + "; latent attention, forward, by TensorRT-LLM"
                         + ("; attention backward of cuDNN: NVIDIA/cudnn-frontend" if name == "h200" else ""))
    return profile


def outputs():
    random_16_bits = [row for row in rows_of("gemm_bf16_random_a100_h100_h200.csv.gz")
                      if row["source"] == "trtllm-1.3.0rc20"]
    tables = {"products": rows_of("gemm_newer_gpus.csv.gz") + random_16_bits,
              "casts": rows_of("cast_fp8.csv.gz"),
              "flash": rows_of("flash_attention_backward.csv.gz"),
              "latent": rows_of("mla_attention_forward.csv.gz"), "latent_held_out": [],
              "nccl": rows_of("nccl_newer_gpus.csv.gz")}
    held_out = []
    profiles = {name: hopper_profile(name, table, tables, held_out)
                for name, table in (("h100-sxm", "H100 80GB HBM3"), ("h200", "H200"))}
    profiles["a100-sxm4-80gb"] = json.loads((DATA / "profiles" / "a100-sxm4-80gb.json").read_text())
    for gpu in MEASURED:
        profiles[gpu["name"]] = measured_profile(gpu, tables, held_out)
    for gpu in DATASHEET:
        profiles[gpu["name"]] = datasheet_profile(gpu, profiles, tables)
    del profiles["a100-sxm4-80gb"]
    texts = {DATA / "profiles" / f"{name}.json": text_of(profile) + "\n"
             for name, profile in profiles.items()}
    note = "rows that data/profiles does not hold (tools/build_newer_profiles.py)"
    add_held_out(texts, "newer", note, "profile,dtype,m,n,k,seconds", held_out)
    add_held_out(texts, "latent", note, "profile,batch,seq,heads,seconds", tables["latent_held_out"])
    return texts


if __name__ == "__main__":
    write_or_check(outputs, __doc__, "tools/build_newer_profiles.py")
