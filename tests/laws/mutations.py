#!/usr/bin/env python3
"""Deliberate mistakes in tpsim's sources, each of which a law must find. Not for CI: every mistake is built.

  tests/laws/mutations.py COPY                 all of them, in a copy of the sources that has build/release
  tests/laws/mutations.py COPY a key lacks precision

COPY is changed and restored, so it is no folder that somebody works in. Exit code 1: a law misses a mistake.
"""
import pathlib
import subprocess
import sys

CASES = "60"


class Mistake:
    """`old` becomes `new` in `file`. `law` finds it; a law with a colon is a test program and its cases."""

    def __init__(self, law, file, old, new):
        self.law, self.file, self.old, self.new = law, file, old, new


MISTAKES = {
    "a saved plan lacks its network": Mistake(
        "saved_plans", "core/scenario/plan_json.cc", 'io.object_if(file.node_gbps > 0, "network"',
        'io.object_if(file.node_gbps > 1e5, "network"'),
    "a setting is not read from a saved plan": Mistake(
        "rows", "core/scenario/plan_json.cc", "row.set(plan, value);\n  }\n};",
        "if (row.setting != Setting::kRankOrder) row.set(plan, value);\n  }\n};"),
    "a saved plan lacks a part": Mistake(
        "rows", "core/software/part_fields.h", "    std::int64_t written = value;\n",
        "    if (part == StackPart::kNormKernel) continue;\n    std::int64_t written = value;\n"),
    "a layer's key lacks sequence parallelism": Mistake(
        "rows", "sim/layers/layer_key.cc", "  key.sequence_parallel = plan.sequence_parallel;\n  if (is_block) {",
        "  if (is_block) {"),
    "a layer's key lacks the precision": Mistake(
        "rows", "sim/layers/layer_key.cc", "    key.precision = plan.precision;\n", ""),
    "the key of a step's end lacks the offload": Mistake(
        "rows", "sim/layers/layer_key.cc", "  key.offload = plan.offload;\n", ""),
    "the key of transfers lacks the chunks of a stage": Mistake(
        "rows", "sim/layers/layer_key.cc", "  key.virtual_stages = plan.virtual_stages;\n", ""),
    "a rule of pruning asks one word of two": Mistake(
        "rows", "plans/search/family_walk.cc", "has_experts(scenario_.model) && tp > 1 && !plan_.sequence_parallel",
        "tp > 1 && !plan_.sequence_parallel"),
    "a bound is above the step": Mistake(
        "enumerated", "sim/bounds/plan_bounds.cc", "constexpr double kRounding = 1 - 1e-9;",
        "constexpr double kRounding = 1.2;"),
    "FLOPs leave out recomputed attention": Mistake(
        "flops", "sim/layers/recomputed_ops.cc",
        "  if (has(RecomputeModule::kCoreAttention)) flops += block.attention_core;\n", ""),
    "parameters leave out a norm": Mistake(
        "parameters", "core/model/model_counts.cc",
        "  if (model.embedding_norm) embedding += norm_parameters(model);\n", ""),
    "parameters leave out positions": Mistake(
        "parameters", "core/model/model_spec.cc", "return std::max(model.ends.positions, model.seq);",
        "return model.ends.positions > 0 ? model.ends.positions : model.seq;"),
    "tokens of a step are those of a rank": Mistake(
        "sums", "sim/step/simulate.cc", "static_cast<double>(plan.global_batch * scenario.model.seq)",
        "static_cast<double>(plan.global_batch / plan.degrees.dp * scenario.model.seq)"),
    "the risk at the peak is not a half": Mistake(
        "memory_risk", "sim/step/simulate.cc", "normal_cdf((peak - scenario", "normal_cdf((1.02 * peak - scenario"),
    "experts' compute counts as network": Mistake(
        "interval_shares", "sim/step/interval.cc", "    default: return std::nullopt;",
        "    default: return GroupKind::kPipeline;"),
    "stating a part moves assumed software away": Mistake(
        "stated", "plans/questions/open_inputs.cc", "return std::clamp(std::log(*with_part / taken) / distance, 0.0, 1.0);",
        "return std::log(*with_part / taken) / distance;"),
    "stating a network changes its NICs": Mistake(
        "stated", "core/machine/node_rate.cc", "  if (std::abs(node_gbps - own) <= kRounding * own) return cluster;\n",
        "  if (std::abs(node_gbps - own) < 0) return cluster;\n"),
    "the nearest multiple is the one below": Mistake(
        "hints", "core/plan/plan_validation.cc", "n - below <= of / 2 ? below : below + of", "below"),
    "a unit has another factor": Mistake(
        "units", "core/base/units.cc", 'Unit{"Gb/s", 1e9 / 8}', 'Unit{"Gb/s", 1e9 / 10}'),
    "why-not leaves out a term": Mistake(
        "why_not", "plans/questions/why_not.cc", "for (std::size_t i = 0; i < best.breakdown.size(); ++i) {\n    diff",
        "for (std::size_t i = 1; i < best.breakdown.size(); ++i) {\n    diff"),
    "an export names no lost part": Mistake(
        "rows", "frameworks/launch/export_check.cc", "  compare(launcher, exported.stack, returned.stack, loss.lost);\n",
        ""),
    "an export writes what it loses": Mistake(
        "rows", "frameworks/launch/export_check.cc", "keys.empty() ? kToleratedLoss : kToleratedRounding",
        "keys.empty() ? kToleratedLoss : 1.0"),
    "an exporter leaves out a part": Mistake(
        "tpsim_frameworks_tests:files hold the*", "frameworks/megatron/megatron_names.cc",
        '"--no-bias-dropout-fusion", StackPart::kResidualKernel, "torch", {}, is_always}',
        '"--no-bias-dropout-fusion", StackPart::kResidualKernel, "torch"}'),
    "an importer reads no sharding": Mistake(
        "tpsim_frameworks_tests:files hold the*", "frameworks/nanotron/nanotron_config.cc",
        'plan.zero = static_cast<int>(in.integer("optimizer.zero_stage", 0));',
        'plan.zero = 0 * static_cast<int>(in.integer("optimizer.zero_stage", 0));'),
    "the window copies no parts": Mistake(
        "tpsim_cli_tests:the copied command*", "gui/views/plan_command.cc",
        "      continue;  // the model's own counts\n", "      continue;\n    if (value != 0) continue;\n"),
    "Python's plans lack a setting": Mistake(
        "options_of_rows", "python/tpsim/_results.py", "    offload: ", "    offload_: "),
}


def run(words, folder):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def finding(mistake, copy):
    """The first line of what the judge prints of the mistake; nothing where it finds none."""
    program, _, cases = mistake.law.partition(":")
    built = run(["ninja", "-C", "build/release", "-j2", program if cases else "tpsim"], copy)
    if built.returncode:
        sys.exit(f"does not build:\n{built.stdout[-3000:]}")
    if cases:
        words = [f"build/release/{program}", cases]
    else:
        words = [sys.executable, "tests/laws/run.py", "--program", "build/release/tpsim", "--law", mistake.law,
                 "--cases", CASES, "--seed", "3", "--first"]
    done = run(words, copy)
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ") or "FAILED" in line]
    return (lines or [done.stderr[-200:]])[0] if done.returncode else ""


def main():
    copy, wanted, missed = pathlib.Path(sys.argv[1]).resolve(), " ".join(sys.argv[2:]), 0
    for name, mistake in MISTAKES.items():
        if wanted not in ("", name):
            continue
        path = copy / mistake.file
        text = path.read_text(encoding="utf-8")
        if text.count(mistake.old) != 1:
            sys.exit(f"{mistake.file}: {mistake.old!r} is there {text.count(mistake.old)} times: mend {name!r}")
        path.write_text(text.replace(mistake.old, mistake.new), encoding="utf-8")
        try:
            found = finding(mistake, copy)
        finally:
            path.write_text(text, encoding="utf-8")
        missed += not found
        print(f"{'found' if found else 'MISSED'}: {name} ({mistake.law}) {found}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
