#!/usr/bin/env python3
"""Merges profiles of one device: samples of all profiles, and other members of the first profile.

Usage: merge_profiles.py -o MERGED PROFILE...

tools/gpu_check.sh profiles a device plan by plan, so that it has a valid profile whenever it ends.
"""

import argparse
import json


def merged_groups(profiles, member, identity):
    """Merges sample tables by key. If several samples have the same key, the first is kept."""
    groups = {}
    for profile in profiles:
        for group in profile.get(member, []):
            key = tuple(group[name] for name in identity)
            rows = groups.setdefault(key, ({k: v for k, v in group.items() if k != "samples"}, {}))[1]
            width = group.get("dims", 1)
            for row in group["samples"]:
                rows.setdefault(tuple(row[:width]), row)
    return [{**head, "samples": list(rows.values())} for head, rows in groups.values()]


def fastest(profiles, name):
    return max(profiles, key=lambda profile: rate_of(profile["device"][name]))["device"][name]


def rate_of(text):
    number, unit = text.split()
    prefix = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "P": 1e15}
    return float(number) * prefix.get(unit[0], 1.0)


def merged(profiles):
    first = dict(profiles[0])
    op = ("op", "variant", "dtype", "dims")
    first["ops"] = merged_groups(profiles, "ops", op)
    first["sustained"] = merged_groups(profiles, "sustained", op)
    first["collectives"] = merged_groups(profiles, "collectives", ("collective", "ranks"))
    chosen_by = first.get("algorithms_chosen_by", "")
    choices = {}
    alike = [one for one in profiles if one.get("algorithms_chosen_by", "") == chosen_by]
    for one in (one for profile in alike for one in profile.get("algorithms", [])):
        # The text of a choice starts with the GEMM, in 14 words. The algorithm follows.
        choices.setdefault(tuple(one["choice"].split()[:14]), one)
    first["algorithms"] = list(choices.values())
    rates = {name: fastest(profiles, name) for name in ("matmul_peak", "vector_peak", "memory_bandwidth")}
    first["device"] = {**first["device"], **rates}
    return first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="+")
    parser.add_argument("-o", required=True, dest="output")
    arguments = parser.parse_args()
    profiles = [json.load(open(path)) for path in arguments.profiles]
    names = {profile["device"]["name"] for profile in profiles}
    if len(names) > 1:
        raise SystemExit(f"merge_profiles.py: profiles of different devices: {', '.join(sorted(names))}")
    with open(arguments.output, "w") as file:
        json.dump(merged(profiles), file, indent=1)


if __name__ == "__main__":
    main()
