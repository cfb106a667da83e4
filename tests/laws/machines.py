"""A better machine or less work is never slower, larger or likelier to run out of memory."""
from base import Skip, law
from program import Refused

# Collectives overlap with at most a share of a phase's device time, not of its elapsed time, and the exposed rest
# is one wait at the end of the phase. If the step waits for the host, less device or host time leaves less to
# overlap with, and the step may become longer by this share although all ops are faster.
ROOM = 1e-5
HOST_ROOM = 2e-3
# Constants that are better when larger (1) or smaller (-1). Values up to one are shares and stay at
# most one.
KNOBS = {
    "cluster": {"intra_node.bandwidth": 1, "intra_node.latency": -1, "intra_node.efficiency": 1,
                "inter_node.bandwidth": 1,
                "inter_node.latency": -1, "inter_node.efficiency": 1, "gpu_clock": 1, "host.link": 1,
                "host.memory_bandwidth": 1, "host.memory": 1},
    "profile": {"device.memory": 1, "device.matmul_peak": 1, "device.vector_peak": 1, "device.memory_bandwidth": 1,
                "model.sustained_clock": 1, "model.streaming_efficiency": 1, "model.kernel_latency": -1},
    "stack": {"host.per_op": -1, "host.per_block_op": -1, "host.per_collective": -1,
              "host.per_block_forward": -1, "host.per_block_backward": -1,
              "host.per_micro_batch": -1, "host.per_step": -1, "memory.context": -1, "memory.collective_buffers": -1,
              "memory.fragmentation": -1, "rank_jitter": -1, "uncalibrated_overhead": -1},
}
# Measured samples determine the time in place of these constants, so that they are changed only
# without samples.
ANCHORED = ("matmul_peak", "sustained_clock", "streaming_efficiency")


def scaled(value, factor):
    """Multiplies a number, or the number in a text with unit, by a factor."""
    if isinstance(value, str):
        number, unit = value.split(" ", 1)
        return f"{float(number) * factor:.9g} {unit}"
    return min(value * factor, 1.0) if factor > 1 and value <= 1 else value * factor


def better(case, kind, name, knob, factor):
    """Writes a catalogue entry with a better constant;
    returns the path. Skips entries without the constant."""
    entry = case.tpsim.show(kind, name)
    place = knob.split(".")
    value = entry
    for key in place:
        if not isinstance(value, dict) or key not in value:
            raise Skip(f"{name} has no {knob}")
        value = value[key]
    if place[-1] in ANCHORED and any(entry.get(key) for key in ("samples", "ops", "op_samples", "collectives")):
        raise Skip("measured samples anchor it")
    return case.changed(kind, name, (place, scaled(value, factor ** KNOBS[kind][knob])))


def worse(before, after, room=ROOM):
    """Yields (kind, text) of each quantity that is worse in the second report."""
    a, b = before["predicted"], after["predicted"]
    if a["breakdown_s"]["host_wait"] > 0.02 * a["step_s"]:
        room = max(room, HOST_ROOM)
    if b["step_s"] > a["step_s"] * (1 + room):
        term = max(b["breakdown_s"], key=lambda name: b["breakdown_s"][name] - a["breakdown_s"][name])
        change = b["step_s"] / a["step_s"] - 1
        yield "slower", f"{a['step_s']:.6g} -> {b['step_s']:.6g} s ({change:+.3%}), most of it {term}"
    if b["memory_gib"]["peak"] > a["memory_gib"]["peak"] * (1 + room):
        yield "larger", f"{a['memory_gib']['peak']:.6g} -> {b['memory_gib']['peak']:.6g} GiB"
    if b["p_oom"] > a["p_oom"] + 1e-9:
        yield "likelier to run out of memory", f"{a['p_oom']:.6g} -> {b['p_oom']:.6g}"


@law("prediction", 3)
def better_machine(case):
    """A plan on a better machine or with faster software is
    never slower, larger or likelier to run out of memory."""
    before, _ = case.tpsim.simulate(case.options)
    named = {**case.options, "--stack": before["stack"], "--profile": before["profile"]["name"]}
    before, _ = case.tpsim.simulate(named)
    for _ in range(4):
        kind = case.rng.choice(["cluster", "cluster", "profile", "profile", "stack"])
        knob, factor = case.rng.choice(sorted(KNOBS[kind])), case.rng.choice([1.1, 1.5, 2, 4])
        if "--node-gbps" in named and knob.startswith("inter_node"):
            continue
        try:
            options = {**named, f"--{kind}": better(case, kind, named[f"--{kind}"], knob, factor)}
            after, _ = case.tpsim.simulate(options)
        except (Skip, Refused):
            continue
        case.checks += 1
        # A ring's exposed part is one wait after the attention of a pass: a shorter attention may move it
        # past the last launch of the host.
        room = 1e-4 if before["cp"] > 1 else ROOM
        for what, text in worse(before, after, room):
            yield case.violation(f"better {knob}: {what}", f"x {factor}: {text}", ("simulate", named),
                                 ("simulate", options))


def less(case, what, report):
    """Returns (options, options with less work). Skips if there is nothing to remove."""
    options, model = dict(case.options), case.tpsim.show("model", case.options["--model"])
    experts = model.get("experts")
    plain = "blocks" not in model

    def shaped(*changes):
        return {"--model": case.changed("model", options["--model"], *changes)}

    batch, cut = report["global_batch"], report["dp"] * report["micro_batch"]
    options["--global-batch"] = batch  # the default depends on the sequence
    if what == "sequence":
        seq = int(options.get("--seq", model["seq"]))
        change = {"--seq": seq // 2} if seq >= 512 else None
    elif what == "batch":
        fits = batch % (2 * cut) == 0 and (report["virtual_stages"] == 1 or batch // (2 * cut) % report["pp"] == 0)
        change = {"--global-batch": batch // 2} if fits and batch // cut > 2 * report["pp"] else None
    elif what == "vocabulary":
        change = shaped((["vocab"], model["vocab"] // 2))
    elif what == "width":
        width = model["ffn_hidden"]
        change = shaped((["ffn_hidden"], width // 2)) if plain and width and width % 2048 == 0 else None
    elif what == "experts a token passes":
        router = experts.get("extras", {}).get("router", {}) if experts else {}
        fits = plain and experts and experts["per_token"] > 1 and router.get("groups", 1) == 1
        change = shaped((["experts", "per_token"], experts["per_token"] // 2)) if fits else None
    elif what == "imbalance":
        options["--expert-load"] = "2"
        change = {"--expert-load": case.rng.choice(["1.5", "1.1", "balanced"])} if experts else None
    elif what == "recompute":
        change = {"--recompute": "none"} if report["recompute"] == "full" else None
    else:
        wider = report["gradient_dtype"] == "fp32" != report["dtype"]
        change = {"--gradient-dtype": report["dtype"]} if wider else None
    if change is None:
        raise Skip(f"no less {what}")
    return options, {**options, **change}


WORK = ("sequence", "batch", "vocabulary", "width", "experts a token passes", "imbalance", "recompute",
        "gradients' bytes")


@law("prediction", 2)
def less_work(case):
    """A shorter sequence, a smaller batch, vocabulary or
    width, or no recompute is never slower or larger."""
    report, _ = case.tpsim.simulate(case.options)
    for what in case.rng.sample(WORK, 3):
        try:
            more, fewer = less(case, what, report)
            before, after = case.tpsim.simulate(more)[0], case.tpsim.simulate(fewer)[0]
        except (Skip, Refused):
            continue
        case.checks += 1
        for found, text in worse(before, after):
            if what == "recompute" and found != "slower":
                continue
            if what == "gradients' bytes" and found != "slower":
                continue  # a copy in the dtype of the weights may exist at the step's end
            yield case.violation(f"less {what}: {found}", text, ("simulate", more), ("simulate", fewer))


@law("prediction", 0.5)
def memory_risk(case):
    """The risk of running out of memory is in [0,1], falls
    with the GPU's memory, and is one half at the peak."""
    report, _ = case.tpsim.simulate(case.options)
    if report["offload"] != "none":
        raise Skip("the host may run out of memory too")
    peak, risks = report["predicted"]["memory_gib"]["peak"], []
    name = report["profile"]["name"]
    for share in (0.5, 0.9, 1.0, 1.1, 2.0):
        path = case.changed("profile", name, (["device", "memory"], f"{peak * share:.9f} GiB"))
        risks.append(case.tpsim.simulate({**case.options, "--profile": path})[0]["predicted"])
    command = "simulate", {**case.options, "--profile": path}
    values = [risk["p_oom"] for risk in risks]
    if not all(0 <= value <= 1 for value in values):
        yield case.violation("a risk is not a share", values, command)
    if values != sorted(values, reverse=True):
        yield case.violation("more memory is riskier", values, command)
    if abs(values[2] - 0.5) > 1e-3 and abs(risks[2]["memory_gib"]["peak"] / peak - 1) < 1e-9:
        yield case.violation("the risk at the peak is not one half", values, command)


UNITS = {"GB/s": ("Gb/s", 8), "Gb/s": ("GB/s", 1 / 8), "us": ("ns", 1000), "GiB": ("MiB", 1024), "TB/s": ("GB/s", 1000),
         "TFLOP/s": ("GFLOP/s", 1000), "MiB": ("GiB", 1 / 1024), "ms": ("us", 1000)}


def respelled(value):
    number, unit = value.split(" ", 1)
    other, factor = UNITS.get(unit, (unit, 1))
    return f"{float(number) * factor!r} {other}"


@law("prediction", 0.4)
def units(case):
    """A machine described in other units has the same prediction."""
    before, _ = case.tpsim.simulate(case.options)
    named = {**case.options, "--profile": before["profile"]["name"]}
    before, _ = case.tpsim.simulate(named)
    for kind in ("cluster", "profile"):
        case.checks += 1
        entry = case.tpsim.show(kind, named[f"--{kind}"])
        changes = [([group, key], respelled(value)) for group in ("intra_node", "inter_node", "host", "device")
                   for key, value in entry.get(group, {}).items()
                   if isinstance(value, str) and len(value.split(" ")) == 2 and value.split(" ")[1] in UNITS]
        options = {**named, f"--{kind}": case.changed(kind, named[f"--{kind}"], *changes)}
        after, _ = case.tpsim.simulate(options)
        yield from case.differs(f"a {kind} in other units predicts otherwise", before["predicted"], after["predicted"],
                                ("simulate", named), ("simulate", options), rounding=1e-6,
                                skip=("step_s_low", "step_s_high"))
