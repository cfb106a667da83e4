#!/usr/bin/env python3
"""Deliberate mistakes in tpsim's sources, each of
which a law must find. Not for CI: it builds the copy.

  tests/laws/mutations.py COPY                 all mistakes, in a copy of the sources with
build/release
  tests/laws/mutations.py COPY a key lacks precision

COPY is changed and restored; do not work in it. Exit code 1: a law misses a mistake.
"""
import os
import pathlib
import subprocess
import sys

CASES = "200"
# All mistakes are compiled at once. The one with the variable's number is active.
VARIABLE = "TPSIM_MISTAKE"
PREAMBLE = f"""#ifndef {VARIABLE}
#define {VARIABLE}
#include <cstdlib>
inline bool is_mistaken(int number) {{
  const char* const asked = std::getenv("{VARIABLE}");
  return asked != nullptr && std::atoi(asked) == number;
}}
#endif
"""


class Mistake:
    """A mistake: `old` becomes `new` in `file`, where MISTAKEN is true if the mistake is
    active. `law` must find it; a law with a colon is a test program and its cases."""

    def __init__(self, law, file, old, new=""):
        # Without `new` the mistake skips a statement.
        self.law, self.file, self.old, self.new = law, file, old, new or f"  if (!MISTAKEN) {old.lstrip()}"


KEY = "sim/layers/layer_key.cc"
EXPORT = "frameworks/launch/export_check.cc"
MISTAKES = {
    "a saved plan lacks its network": Mistake(
        "saved_plans", "core/scenario/plan_json.cc", 'file.node_gbps > 0, key_at("plan/network")',
        'file.node_gbps > (MISTAKEN ? 1e5 : 0), key_at("plan/network")'),
    "a setting is not read from a saved plan": Mistake(
        "rows", "core/scenario/plan_json.cc", "row.set(plan, value);\n  }\n};",
        "if (!MISTAKEN || row.setting != Setting::kRankOrder) row.set(plan, value);\n  }\n};"),
    "a saved plan lacks a part": Mistake(
        "rows", "core/software/field_json.h", "    std::int64_t written = value;\n",
        "    if (MISTAKEN && part == StackPart::kNormKernel) continue;\n    std::int64_t written = value;\n"),
    "a layer's key lacks sequence parallelism": Mistake(
        "rows", KEY, "  key.sequence_parallel = plan.sequence_parallel;\n  if (is_block) {",
        "  if (!MISTAKEN) key.sequence_parallel = plan.sequence_parallel;\n  if (is_block) {"),
    "a layer's key lacks the precision": Mistake("rows", KEY, "    key.precision = plan.precision;\n"),
    "the key of a step's end lacks the offload": Mistake("rows", KEY, "  key.offload = plan.offload;\n"),
    "a rule of pruning asks one word of two": Mistake(
        "rows", "plans/search/family_walk.cc", "has_experts(scenario_.model) && tp > 1 && !plan_.sequence_parallel",
        "(MISTAKEN || has_experts(scenario_.model)) && tp > 1 && !plan_.sequence_parallel"),
    "a bound is above the step": Mistake(
        "searches", "sim/bounds/plan_bounds.cc", "constexpr double kRounding = 1 - 1e-9;",
        "const double kRounding = MISTAKEN ? 1.2 : 1 - 1e-9;"),
    "FLOPs leave out recomputed attention": Mistake(
        "flops", "lowering/passes/recompute.cc", "repeats_core(scenario, plan));\n        break;",
        "repeats_core(scenario, plan) && !MISTAKEN);\n        break;"),
    "parameters leave out a norm": Mistake(
        "parameters", "core/model/model_counts.cc", "(model.embedding_norm ? 2 : 1)",
        "(model.embedding_norm && !MISTAKEN ? 2 : 1)"),
    "parameters leave out positions": Mistake(
        "parameters", "core/model/model_spec.cc", "return std::max(model.ends.positions, model.seq);",
        "return MISTAKEN && model.ends.positions > 0 ? model.ends.positions\n"
        "                                              : std::max(model.ends.positions, model.seq);"),
    "tokens of a step are those of a rank": Mistake(
        "sums", "sim/step/simulate.cc", "static_cast<double>(plan.global_batch * scenario.model.seq)",
        "static_cast<double>(plan.global_batch / (MISTAKEN ? plan.degrees.dp : 1) * scenario.model.seq)"),
    "the risk at the peak is not a half": Mistake(
        "memory_risk", "sim/step/simulate.cc", "probability_of_oom(scenario, p.peak)",
        "probability_of_oom(scenario, (MISTAKEN ? 1.02 : 1.0) * p.peak)"),
    "experts' compute counts as network": Mistake(
        "interval_shares", "sim/step/interval.cc", "    default: return std::nullopt;",
        "    default: return MISTAKEN ? std::optional(GroupKind::kPipeline) : std::nullopt;"),
    "stating a part moves assumed software away": Mistake(
        "stated", "plans/questions/open_inputs.cc", "std::log(with_part->step / taken) / distance, 0.0, 1.0);",
        "std::log(with_part->step / taken) / distance, 0.0, MISTAKEN ? 9.0 : 1.0);"),
    "stating a network changes its NICs": Mistake(
        "own_network", "core/machine/node_rate.cc", "<= kRounding * own) return cluster;",
        "<= (MISTAKEN ? -1 : kRounding) * own) return cluster;"),
    "the nearest multiple is the one below": Mistake(
        "hints", "core/plan/plan_validation.cc", "n - below <= of / 2 ?", "MISTAKEN || n - below <= of / 2 ?"),
    "a unit has another factor": Mistake(
        "units", "core/base/units.cc", """constexpr std::array kBandwidthUnits = {
    Unit{"TB/s", 1e12},     Unit{"GB/s", 1e9},     Unit{"MB/s", 1e6},    Unit{"B/s", 1.0},
    Unit{"Tb/s", 1e12 / 8}, Unit{"Gb/s", 1e9 / 8},""", """const std::array kBandwidthUnits = {
    Unit{"TB/s", 1e12},     Unit{"GB/s", 1e9},     Unit{"MB/s", 1e6},    Unit{"B/s", 1.0},
    Unit{"Tb/s", 1e12 / 8}, Unit{"Gb/s", 1e9 / (MISTAKEN ? 10 : 8)},"""),
    "why-not leaves out a term": Mistake(
        "why_not", "plans/questions/why_not.cc", "for (std::size_t i = 0; i < best.breakdown.size(); ++i) {\n    diff",
        "for (std::size_t i = MISTAKEN ? 1 : 0; i < best.breakdown.size(); ++i) {\n    diff"),
    "an export names no lost part": Mistake(
        "rows", EXPORT, "  compare(launcher, exported.stack, returned.stack, loss.lost);\n"),
    "an export writes what it loses": Mistake(
        "rows", EXPORT, "is_exact ? kToleratedRounding : kToleratedLoss",
        "is_exact ? (MISTAKEN ? 1.0 : kToleratedRounding) : kToleratedLoss"),
    "an exporter leaves out parts": Mistake(
        "tpsim_frameworks_tests:files hold the*", "frameworks/megatron/megatron_names.cc",
        "bool is_always(LaunchStack, const PlanFile&) { return true; }",
        "bool is_always(LaunchStack, const PlanFile&) { return !MISTAKEN; }"),
    "an importer reads no sharding": Mistake(
        "tpsim_frameworks_tests:files hold the*", "frameworks/nanotron/nanotron_config.cc",
        'static_cast<int>(in.integer("optimizer.zero_stage", 0));',
        'static_cast<int>(in.integer("optimizer.zero_stage", 0)) * (MISTAKEN ? 0 : 1);'),
    "the window copies no parts": Mistake(
        "tpsim_cli_tests:the copied command*", "gui/views/plan_command.cc",
        "if (part == StackPart::kExpertLoad && value == kCountedLoad)",
        "if (MISTAKEN || (part == StackPart::kExpertLoad && value == kCountedLoad))"),
    "Python's plans lack a setting": Mistake(
        "options_of_rows", "docs/reports.md", "| `offload` | text | `none`", "| `other` | text | `none`"),
}


def run(words, folder, number=0):
    environment = {**os.environ, VARIABLE: str(number)}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def make_mistakes(copy):
    """Writes all mistakes into the copy, apart from those in Python, which has no MISTAKEN."""
    for number, (name, mistake) in enumerate(MISTAKES.items(), 1):
        path = copy / mistake.file
        text = path.read_text(encoding="utf-8")
        if text.count(mistake.old) != 1:
            sys.exit(f"{mistake.file}: {mistake.old!r} is there {text.count(mistake.old)} times: mend {name!r}")
        if path.suffix == ".py":
            continue
        text = text.replace(mistake.old, mistake.new.replace("MISTAKEN", f"is_mistaken({number})"))
        is_code = path.suffix != ".md"
        path.write_text(PREAMBLE + text if is_code and not text.startswith(PREAMBLE) else text, encoding="utf-8")


def finding(mistake, number, copy):
    """Returns the first line of a violation that the law prints; nothing if it finds none."""
    path = copy / mistake.file
    if path.suffix == ".py":
        path.write_text(path.read_text(encoding="utf-8").replace(mistake.old, mistake.new), encoding="utf-8")
    program, _, cases = mistake.law.partition(":")
    words = [sys.executable, "tests/laws/run.py", "--program", "build/release/tpsim", "--law", mistake.law, "--cases",
             CASES, "--seed", "3", "--first"]
    done = run([f"build/release/{program}", cases] if cases else words, copy, number)
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ") or "FAILED" in line]
    return (lines or [done.stderr[-200:]])[0] if done.returncode else ""


def main():
    copy, wanted, missed = pathlib.Path(sys.argv[1]).resolve(), " ".join(sys.argv[2:]), 0
    originals = {file: (copy / file).read_text(encoding="utf-8") for file in {one.file for one in MISTAKES.values()}}
    try:
        make_mistakes(copy)
        programs = {one.law.partition(":")[0] for one in MISTAKES.values() if ":" in one.law}
        built = run(["ninja", "-C", "build/release", "-j2", "tpsim", *sorted(programs)], copy)
        if built.returncode:
            sys.exit(f"does not build:\n{built.stdout[-3000:]}")
        for number, (name, mistake) in enumerate(MISTAKES.items(), 1):
            if wanted in ("", name):
                found = finding(mistake, number, copy)
                missed += not found
                print(f"{'found' if found else 'MISSED'}: {name} ({mistake.law}) {found}", flush=True)
    finally:
        for file, text in originals.items():
            (copy / file).write_text(text, encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
