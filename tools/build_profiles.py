#!/usr/bin/env python3
"""Builds data/profiles/*.json from the published measurements in data/microbench/.

  tools/build_profiles.py            writes the profiles, prints how well the fitted constants do
  tools/build_profiles.py --check    fails if a profile differs from what would be written

A profile holds a thinned grid of matrix products, flash-attention and collective samples, and the
constants of DeviceModel (core/profile.h). The constants of matrix products are fitted here on every
4th row of the table and judged on the others, with the bound of sim/matmul_model.cc:

  t = latency + max(compute, memory)
  compute = min over tiles (a x b, rate r) of ceil(tiles / processors) 2 a b k / (r e peak / processors)
  memory  = 2 (m k + n k + m n) bytes / (streaming efficiency x memory bandwidth)

  latency  median of the smallest products, whose work takes no time
  e        median of compute(e = 1) / (t - latency) over products of more than 0.2 ms that compute
  tile     the largest tile, chosen for the least mean |log error| on the rows fitted

Everything else is published by others and named in the "source" of its table below.
"""

import argparse
import csv
import gzip
import json
import math
import statistics
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
AICONFIGURATOR = "ai-dynamo/aiconfigurator at 095f58a (Apache-2.0), systems/data"

# Shares of the largest tile that the library falls back on, and what each keeps of its rate:
# kTiles of sim/matmul_model.cc.
TILES = ((1, 1, 1.0), (1, 2, 0.9), (2, 2, 0.75), (2, 4, 0.55))
LARGEST_TILES = ((128, 256), (256, 128), (128, 128), (256, 256))

# Which products a profile keeps: full grids, denser where transformer layers lie.
WIDTHS_A100 = (512, 1024, 1536, 2048, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288,
               16384, 65536)
WIDTHS_HOPPER = (512, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 10240, 12288, 16384, 51200,
                 65536)
TOKENS_A100 = (1, 16, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
TOKENS_HOPPER = (1, 64, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384, 32768)

FLASH_SEQUENCES = (512, 1024, 2048, 4096, 8192, 16384)
FLASH_BATCHES = (1, 2, 4, 8)
FLASH_HEAD_DIMS = (64, 128)

TRANSPOSE_B = 2  # MatmulVariant: y = x W^T

A100 = {
    "name": "a100-sxm4-80gb",
    "gemm": "gemm_a100_sxm4_80gb.csv.gz",
    "gpu": "NVIDIA A100-SXM4-80GB",
    "flash_kernel": "vllm_flash_attn",
    "tokens": TOKENS_A100,
    "widths": WIDTHS_A100,
    "device": {
        "name": "NVIDIA A100-SXM4-80GB",
        "source": "NVIDIA A100 80GB datasheet; memory: total_memory of torch.cuda.get_device_properties",
        "memory": "81251 MiB",
        "processors": 108,
        "matmul_peak": "312 TFLOP/s",
        "matmul_dtype": "bf16",
        "vector_peak": "19.5 TFLOP/s",
        "memory_bandwidth": "2039 GB/s",
        "asynchronous": True,
    },
    "published": {
        "sustained_clock": (0.93, "257 TFLOP/s (thonking.ai) to 271 (stas00/ml-engineering) sustained over a burst median of 284"),
        "streaming_efficiency": (0.82, "streaming kernels reach 0.80-0.85 of the memory bandwidth; aiconfigurator prices memory operations at 0.8"),
        "reduction_efficiency": (0.62, "LayerNorm 1.26 TB/s forward, 1.16 backward, NVIDIA/apex PR 1037"),
        "flash_backward_efficiency": (0.54, "168 TFLOP/s of FlashAttention-2 at 4096 tokens, causal half, A100 PCIe, NVIDIA/cudnn-frontend benchmark/"),
        "kernel_latency": (3e-6, "aiconfigurator adds 3 us to every memory operation"),
    },
}
H100 = {
    "name": "h100-sxm",
    "gemm": "gemm_h100_sxm.csv.gz",
    "gpu": "NVIDIA H100 80GB HBM3",
    "flash_kernel": None,  # the tables hold none
    "tokens": TOKENS_HOPPER,
    "widths": WIDTHS_HOPPER,
    "device": {
        "name": "NVIDIA H100 80GB HBM3",
        "source": "NVIDIA H100 SXM datasheet; memory: total_memory of torch.cuda.get_device_properties, stas00/ml-engineering network/README.md",
        "memory": "81089 MiB",
        "processors": 132,
        "matmul_peak": "989 TFLOP/s",
        "matmul_dtype": "bf16",
        "vector_peak": "66.9 TFLOP/s",
        "memory_bandwidth": "3352 GB/s",
        "asynchronous": True,
    },
    "published": {
        "sustained_clock": (0.95, "training sustains clocks 5-10 % below those of short bursts"),
        "streaming_efficiency": (0.85, "copies reach 3.0-3.09 of 3.35 TB/s, other streaming kernels 0.80-0.85"),
        "reduction_efficiency": (0.75, "RMSNorm on H200, which has the same processors: see h200"),
        "flash_forward_efficiency": (0.58, "579 TFLOP/s of FlashAttention-3 at 4096 tokens, causal half, Shah et al. 2024, arXiv 2407.08608"),
        "flash_backward_efficiency": (0.48, "474 TFLOP/s of cuDNN 9.19 on H200 at 4096 tokens, causal half, NVIDIA/cudnn-frontend benchmark/"),
        "kernel_latency": (2.5e-6, "kernels of 1-2 TB/s below 3 us of work on H200, NVIDIA/cudnn-frontend benchmark/"),
    },
}
H200 = {
    "name": "h200",
    "gemm": "gemm_h200.csv.gz",
    "gpu": "NVIDIA H200",
    "flash_kernel": "vllm_flash_attn_fa3",
    "tokens": TOKENS_HOPPER,
    "widths": WIDTHS_HOPPER,
    "device": {
        "name": "NVIDIA H200",
        "source": "NVIDIA H200 SXM datasheet; memory: total_memory of torch.cuda.get_device_properties",
        "memory": "143156 MiB",
        "processors": 132,
        "matmul_peak": "989 TFLOP/s",
        "matmul_dtype": "bf16",
        "vector_peak": "66.9 TFLOP/s",
        "memory_bandwidth": "4.8 TB/s",
        "asynchronous": True,
    },
    "published": {
        "sustained_clock": (0.95, "training sustains clocks 5-10 % below those of short bursts"),
        "streaming_efficiency": (0.85, "copies reach 4.3 of 4.8 TB/s, other streaming kernels 0.80-0.85"),
        "reduction_efficiency": (0.75, "RMSNorm 3.7-3.85 TB/s forward, 3.4-3.8 backward, NVIDIA/cudnn-frontend benchmark/"),
        "flash_backward_efficiency": (0.48, "474 TFLOP/s of cuDNN 9.19 at 4096 tokens, causal half, NVIDIA/cudnn-frontend benchmark/"),
        "kernel_latency": (2.5e-6, "kernels of 1-2 TB/s below 3 us of work, NVIDIA/cudnn-frontend benchmark/"),
    },
}


def rows_of(name):
    with gzip.open(DATA / "microbench" / name, "rt", newline="") as file:
        return list(csv.DictReader(file))


def rate_in_units(text):
    """Base units of "312 TFLOP/s" or "2039 GB/s"."""
    number, unit = text.split(" ")
    return float(number) * {"T": 1e12, "G": 1e9}[unit[0]]


class MatmulBound:
    """The bound of sim/matmul_model.cc for one device, with efficiency 1 and no latency."""

    def __init__(self, gpu, largest_tile):
        self.largest_tile = largest_tile
        self.processors = gpu["device"]["processors"]
        self.peak = rate_in_units(gpu["device"]["matmul_peak"])
        self.stream = (rate_in_units(gpu["device"]["memory_bandwidth"])
                       * gpu["published"]["streaming_efficiency"][0])

    def compute(self, m, n, k):
        least = math.inf
        for m_divisor, n_divisor, rate in TILES:
            a, b = self.largest_tile[0] // m_divisor, self.largest_tile[1] // n_divisor
            waves = math.ceil(math.ceil(m / a) * math.ceil(n / b) / self.processors)
            least = min(least, waves * 2 * a * b * k / (rate * self.peak / self.processors))
        return least

    def memory(self, m, n, k):
        return 2 * (m * k + n * k + m * n) / self.stream

    def seconds(self, shape, efficiency, latency):
        return latency + max(self.compute(*shape) / efficiency, self.memory(*shape))


def log_errors(bound, efficiency, latency, samples):
    return [math.log(bound.seconds(shape, efficiency, latency) / t) for shape, t in samples]


def fit_efficiency(bound, latency, samples):
    shares = [bound.compute(*shape) / (t - latency) for shape, t in samples
              if t > 200e-6 and bound.compute(*shape) > bound.memory(*shape)]
    return statistics.median(shares)


def fit_matmul(gpu, samples):
    """The bound with its best largest tile, its efficiency, its latency, from the rows to fit."""
    latency = statistics.median(t for (m, n, k), t in samples if m <= 128 and n <= 256 and k <= 128)
    training = [(shape, t) for shape, t in samples if min(shape) >= 256]

    def candidate(tile):
        bound = MatmulBound(gpu, tile)
        efficiency = fit_efficiency(bound, latency, samples)
        errors = log_errors(bound, efficiency, latency, training)
        return statistics.fmean(map(abs, errors)), bound, efficiency

    _, bound, efficiency = min((candidate(tile) for tile in LARGEST_TILES), key=lambda c: c[0])
    return bound, round(efficiency, 3), round(latency, 8)


def report_fit(name, fit, held_out):
    bound, efficiency, latency = fit
    print(f"{name}: efficiency {efficiency}, largest tile {bound.largest_tile}, "
          f"latency {latency * 1e6:.2f} us; on the rows not fitted:")
    for title, least in (("all m, n, k >= 1024", 1024), ("all m, n, k >= 256", 256), ("all", 1)):
        samples = [(shape, t) for shape, t in held_out if min(shape) >= least]
        errors = log_errors(bound, efficiency, latency, samples)
        sizes = sorted(map(abs, errors))
        print(f"  {title:<20} {len(sizes):>6} rows  |error| mean {statistics.fmean(sizes):6.1%} "
              f"median {statistics.median(sizes):6.1%}  90th percentile "
              f"{sizes[int(0.9 * len(sizes))]:6.1%}  bias {statistics.fmean(errors):+6.1%}")


def matmul_group(gpu, samples):
    tokens, widths = set(gpu["tokens"]), set(gpu["widths"])
    kept = [[1, m, n, k, t] for (m, n, k), t in samples
            if m in tokens and n in widths and k in widths]
    return {"op": "matmul", "variant": TRANSPOSE_B, "dtype": "bf16", "dims": 4,
            "samples": sorted(kept)}


def flash_samples(gpu, rows):
    """Median seconds by (batch, seq, heads, kv_heads, head_dim), for shapes of training."""
    times = {}
    for row in rows:
        key = tuple(int(row[column]) for column in ("batch", "seq", "heads", "kv_heads", "head_dim"))
        wanted = (row["gpu"] == gpu["gpu"] and row["kernel"] == gpu["flash_kernel"]
                  and key[0] in FLASH_BATCHES and key[1] in FLASH_SEQUENCES
                  and key[4] in FLASH_HEAD_DIMS)
        if wanted:
            times.setdefault(key, []).append(float(row["seconds"]))
    return {key: statistics.median(seconds) for key, seconds in sorted(times.items())}


def flash_efficiency(gpu, samples):
    """Median share of the peak over long, wide shapes; causal attention counts half."""
    peak = rate_in_units(gpu["device"]["matmul_peak"])
    shares = [2 * batch * heads * seq * seq * head_dim / seconds / peak
              for (batch, seq, heads, _, head_dim), seconds in samples.items()
              if 2048 <= seq <= 8192 and head_dim == 128 and batch * heads >= 32]
    return round(statistics.median(shares), 3)


def collective_groups(gpu, rows):
    """Half precision only: integers take other kernels and reach less of NVLS."""
    times = {}
    for row in rows:
        if row["gpu"] != gpu["gpu"] or row["dtype"] != "half" or row["collective"] == "alltoall":
            continue
        group = times.setdefault((row["collective"], int(row["ranks"])), {})
        group.setdefault(int(row["bytes"]), []).append(float(row["seconds"]))
    return [{"collective": collective, "ranks": ranks,
             "samples": [[size, statistics.median(t)] for size, t in sorted(group.items())]}
            for (collective, ranks), group in sorted(times.items())]


def seconds_text(seconds):
    return f"{round(seconds * 1e6, 2):g} us"


def model_of(gpu, fit, flash):
    bound, efficiency, latency = fit
    constants = {key: value for key, (value, _) in gpu["published"].items()}
    sources = [f"{key}: {source}" for key, (_, source) in gpu["published"].items()]
    if flash:
        constants["flash_forward_efficiency"] = flash_efficiency(gpu, flash)
        sources.append("flash_forward_efficiency: median of the samples below with 2048 to 8192 "
                       "tokens, head_dim 128 and at least 32 heads in the batch")
    fitted = ("matmul_efficiency, tile, matmul_latency: fitted by tools/build_profiles.py on every "
              f"4th row of data/microbench/{gpu['gemm']}")
    return {
        "source": "; ".join([fitted] + sources),
        "provenance": "published",
        "matmul_efficiency": efficiency,
        "tile_m": bound.largest_tile[0],
        "tile_n": bound.largest_tile[1],
        "matmul_latency": seconds_text(latency),
        "sustained_clock": constants["sustained_clock"],
        "streaming_efficiency": constants["streaming_efficiency"],
        "reduction_efficiency": constants["reduction_efficiency"],
        "flash_forward_efficiency": constants["flash_forward_efficiency"],
        "flash_backward_efficiency": constants["flash_backward_efficiency"],
        "kernel_latency": seconds_text(constants["kernel_latency"]),
    }


def profile_of(gpu, tables):
    samples = [((int(row["m"]), int(row["n"]), int(row["k"])), float(row["seconds"]))
               for row in rows_of(gpu["gemm"])]
    fit = fit_matmul(gpu, samples[::4])
    report_fit(gpu["name"], fit, [s for i, s in enumerate(samples) if i % 4 != 0])
    flash = flash_samples(gpu, tables["flash"])
    ops = [matmul_group(gpu, samples)]
    if flash:
        ops.append({"op": "flash_forward", "variant": 0, "dtype": "bf16", "dims": 5,
                    "samples": [[*key, seconds] for key, seconds in flash.items()]})
    return {
        "format": "tpsim-profile/1",
        "name": gpu["name"],
        "source": f"{AICONFIGURATOR}: bf16 products y = x W^T timed in CUDA graphs with random "
                  "inputs, NCCL collectives in half precision on one node"
                  + (f", {gpu['flash_kernel']} forward" if flash else ""),
        "date": "not stated",
        "provenance": "published",
        "device": gpu["device"],
        "model": model_of(gpu, fit, flash),
        "burst_clocks": True,
        "ops": ops,
        "collectives": collective_groups(gpu, tables["nccl"]),
    }


def text_of(value, indent=0):
    """JSON with one line per row of a table and per plain member."""
    space = " " * (indent + 2)
    if isinstance(value, dict):
        members = [f"{space}{json.dumps(key)}: {text_of(item, indent + 2)}"
                   for key, item in value.items()]
        return "{\n" + ",\n".join(members) + "\n" + " " * indent + "}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        items = [space + text_of(item, indent + 2) for item in value]
        return "[\n" + ",\n".join(items) + "\n" + " " * indent + "]"
    return json.dumps(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail if a profile is not what would be written")
    check = parser.parse_args().check
    tables = {"flash": rows_of("flash_attention_forward.csv.gz"),
              "nccl": rows_of("nccl_one_node.csv.gz")}
    stale = []
    for gpu in (A100, H100, H200):
        path = DATA / "profiles" / f"{gpu['name']}.json"
        text = text_of(profile_of(gpu, tables)) + "\n"
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    if stale:
        sys.exit("not what tools/build_profiles.py writes: " + ", ".join(stale))


if __name__ == "__main__":
    main()
