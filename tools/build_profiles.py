#!/usr/bin/env python3
"""Builds data/profiles/*.json from the published measurements in data/microbench/.

  tools/build_profiles.py            writes the profiles, prints the errors of the fitted constants
  tools/build_profiles.py --check    fails if a profile differs from what would be written

tools/build_newer_profiles.py builds h100-sxm, h200 and all newer profiles. Members of an existing
profile that are in no table (link, attention_speeds) are kept.

A profile has a sample of the measured GEMMs and flash attention, all measured collectives, and the
constants of DeviceModel (core/machine/profile.h). Samples are selected by a hash, so that all sizes
occur both inside and outside the profile. Some rows outside are written to held_out_*.csv, and
test the predictions. GEMM constants are fitted to a part of the selected rows: coordinate
descent finds the least mean |log error| of the bound in costs/matmul_model.cc.

All other numbers are published by others; "source" of each table in the code names the publication.
"""

import argparse
import csv
import json
import math
import sys

from profile_fits import (ACCUMULATE, AICONFIGURATOR, DATA, OUTPUT_FLOAT32, ROOT, TRANSPOSE_A,
                          TRANSPOSE_B, collective_groups, fit_matmul, model_of, op_group,
                          profile_head, report_fit, rows_of, split_flash, split_products)
from published_devices import A100, A100_40GB, A100_PCIE, B200, H200

SIMUMAX = "MooreThreads/SimuMax (Apache-2.0), configs/system"
# SimuMax's layout names are column-major: forward, dgrad, wgrad.
SIMUMAX_LAYOUTS = {"TN": TRANSPOSE_B, "NN": 0, "NT": TRANSPOSE_A}
SIMUMAX_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
MEBIBYTE = 1 << 20


def fields_of(text):
    """Parses "a=1, b=x" to a dict."""
    return dict(part.split("=") for part in text.split(", "))


def simumax_products(rows):
    """Returns the GEMM seconds by variant and (batch, m, n, k)."""
    groups = {}
    for row in rows:
        f = fields_of(row["shape_or_message"])
        variant = SIMUMAX_LAYOUTS[f["layout"]]
        variant |= ACCUMULATE if f["accumulate"] == "True" else 0
        variant |= OUTPUT_FLOAT32 if f["out_dtype"] == "fp32" else 0
        shape = tuple(int(f[name]) for name in ("b", "m", "n", "k"))
        flops = 2 * math.prod(shape)
        groups.setdefault(variant, {})[shape] = flops / (float(row["value"]) * 1e12)
    return groups


def simumax_flash(rows, products):
    """Returns seconds by (batch, seq, heads, kv_heads, head_dim). Stated rates ignore the mask."""
    times = {}
    for row in rows:
        f = fields_of(row["shape_or_message"])
        if f["qk_head_dim"] != f["v_head_dim"] or f["qkv_contiguous"] != "True":
            continue
        key = tuple(int(f[name]) for name in
                    ("batch", "seq_len", "head_num", "kv_head_num", "qk_head_dim"))
        batch, seq, heads, _, head_dim = key
        flops = 2 * products * batch * heads * seq * seq * head_dim
        times[key] = flops / (float(row["value"]) * 1e12)
    return times


def link_of_fit(name, ranks):
    """Whether a fit applies to `ranks` GPUs: "..._4x: ..." to 4, "high..." without number to any."""
    stated = name.split(":")[0].rsplit("_", 1)[-1]
    return stated == f"{ranks}x" if stated[:-1].isdigit() else name.startswith("high")


def simumax_collectives(rows):
    """Returns times for sizes of at least 1 MiB from SimuMax's fits of NCCL: t = fixed + latency
    + bus factor x size / rate. Smaller messages are left to the model."""
    groups = []
    for collective in SIMUMAX_COLLECTIVES:
        for ranks in (2, 4, 8):
            for row in rows:
                name = row["shape_or_message"]
                if row["kind"] != f"{collective}_fit" or not link_of_fit(name, ranks):
                    continue
                fit = dict(part.split("=") for part in row["value"].split(" "))
                rate = float(fit["eff"]) * float(name.split("link ")[1].split(" ")[0]) * 1e9
                latency = (float(fit["lat_us"]) + float(fit["fixed_us"] or 0)) * 1e-6
                factor = (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks
                samples = [[size, float(f"{latency + factor * size / rate:.6g}")]
                           for size in (MEBIBYTE << i for i in range(0, 13, 2))]
                groups.append({"collective": collective, "ranks": ranks, "samples": samples})
    return groups


def group_of(op, variant, dims, samples):
    return op_group(op, variant, dims,
                    [[*key, float(f"{t:.6g}")] for key, t in sorted(samples.items())])


def simumax_profile(gpu, table):
    """Returns a profile with all ops of a device. The table is small and has all three layouts."""
    rows = [row for row in table if row["gpu"] == gpu["gpu"]]
    by_kind = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
    products = simumax_products(by_kind["gemm_bf16"])
    forward = simumax_flash(by_kind["flash_attention_fwd"], 2)
    backward = simumax_flash(by_kind["flash_attention_bwd"], 5)
    fit = fit_matmul(gpu, [(shape[1:], t) for shape, t in products[TRANSPOSE_B].items()])
    report_fit(gpu["name"], gpu, fit, [(shape[1:], t) for shape, t in products[TRANSPOSE_B].items()])
    return profile_head(
        gpu["name"], f"{SIMUMAX}: bf16 products in three layouts, flash attention forward and backward; "
                     "collectives by its fits of NCCL on that machine") | {
        "device": gpu["device"],
        "model": model_of(gpu, fit, forward, len(products[TRANSPOSE_B])),
        "burst_clocks": gpu["burst_clocks"],
        "ops": [group_of("matmul", variant, 4, samples) for variant, samples in sorted(products.items())]
               + [group_of("flash_forward", 0, 5, forward),
                  group_of("flash_backward", 0, 5, backward)],
        "collectives": simumax_collectives(rows),
    }


def sibling_profile(gpu, profile):
    """Returns the profile of a GPU with the same chip as a measured GPU, but different memory."""
    return dict(profile, name=gpu["name"], device=gpu["device"],
                source=f"{profile['source']}; {gpu['measured_on']}")


def profile_of(gpu, tables, held_out):
    """Returns the profile; adds the held-out rows to `held_out`."""
    samples = [((int(row["m"]), int(row["n"]), int(row["k"])), float(row["seconds"]))
               for row in rows_of(gpu["gemm"])]
    kept, left_out = split_products(samples)
    fit = fit_matmul(gpu, kept)
    report_fit(gpu["name"], gpu, fit, left_out)
    flash, flash_left_out = split_flash(gpu, tables["flash"])
    held_out["products"] += [[gpu["name"], *shape, t] for shape, t in sorted(left_out)]
    held_out["flash"] += [[gpu["name"], *key, t] for key, t in flash_left_out.items()]
    ops = [op_group("matmul", TRANSPOSE_B, 4, sorted([1, *shape, t] for shape, t in kept))]
    if flash:
        ops.append(op_group("flash_forward", 0, 5, [[*key, seconds] for key, seconds in flash.items()]))
    return profile_head(
        gpu["name"], f"{AICONFIGURATOR}: bf16 products y = x W^T timed in CUDA graphs with random "
                     "inputs, NCCL collectives in half precision on one node"
                     + (f", {gpu['flash_kernel']} forward" if flash else "")) | {
        "device": gpu["device"],
        "model": model_of(gpu, fit, flash),
        "burst_clocks": True,
        "ops": ops,
        "collectives": collective_groups(gpu, tables["nccl"]),
    }


def text_of(value, indent=0):
    """Formats JSON with one line per row of a table and per plain member."""
    space = " " * (indent + 2)
    if isinstance(value, dict):
        members = [f"{space}{json.dumps(key)}: {text_of(item, indent + 2)}"
                   for key, item in value.items()]
        return "{\n" + ",\n".join(members) + "\n" + " " * indent + "}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        items = [space + text_of(item, indent + 2) for item in value]
        return "[\n" + ",\n".join(items) + "\n" + " " * indent + "]"
    return json.dumps(value)


def with_stated(profile, path):
    """Adds the members of the existing file that are not in any table."""
    if not path.exists():
        return profile
    stated = json.loads(path.read_text())
    result = {}
    for key in stated:
        value = profile.get(key, stated[key])
        result[key] = {k: value.get(k, stated[key][k]) for k in stated[key]} if key == "model" else value
    return result


HELD_OUT_COLUMNS = {"products": "profile,m,n,k,seconds",
                    "flash": "profile,batch,seq,heads,kv_heads,head_dim,seconds"}


def outputs():
    """Returns the text of every file that this script writes, by path."""
    tables = {"flash": rows_of("flash_attention_forward.csv.gz"),
              "nccl": rows_of("nccl_one_node.csv.gz")}
    held_out = {"products": [], "flash": []}
    texts = {}
    profiles = [profile_of(A100, tables, held_out)]
    _, flash_left_out = split_flash(H200, tables["flash"])  # its samples are already in the profile
    held_out["flash"] += [[H200["name"], *key, t] for key, t in flash_left_out.items()]
    profiles.append(sibling_profile(A100_40GB, profiles[0]))
    operations = rows_of("operations_b200_a100_pcie.csv.gz")
    profiles += [simumax_profile(gpu, operations) for gpu in (B200, A100_PCIE)]
    for profile in profiles:
        path = DATA / "profiles" / f"{profile['name']}.json"
        texts[path] = text_of(with_stated(profile, path)) + "\n"
    for kind, rows in held_out.items():
        note = f"{AICONFIGURATOR}: rows that data/profiles does not hold (tools/build_profiles.py)"
        add_held_out(texts, kind, note, HELD_OUT_COLUMNS[kind], rows)
    return texts


def add_held_out(texts, kind, note, columns, rows):
    """Adds a file of held-out rows to `texts`."""
    lines = [f"# {note}", columns, *(",".join(map(str, row)) for row in rows)]
    texts[ROOT / "tests" / "costs" / f"held_out_{kind}.csv"] = "\n".join(lines) + "\n"


def write_or_check(outputs, description, tool):
    """Writes the texts by path. With --check, only compares them and fails if a file differs."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail if a file is not what would be written")
    check = parser.parse_args().check
    stale = []
    for path, text in outputs().items():
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    if stale:
        sys.exit(f"not what {tool} writes: " + ", ".join(stale))


if __name__ == "__main__":
    write_or_check(outputs, __doc__, "tools/build_profiles.py")
