"""90 % intervals: stating an input never widens them."""
import math

from base import Skip, close, law, option_of
from program import Refused

ROOM = 1e-6
HALF_OF_90 = 1.6448536269514722  # half of a 90 % interval, in standard deviations


def step_of(report):
    return report["predicted"]["step_s"]


def spread(report):
    """Returns the slow and fast side of the interval, relative to the step."""
    predicted = report["predicted"]
    step = predicted["step_s"]
    return {"slow": predicted["step_s_high"] / step - 1, "fast": 1 - predicted["step_s_low"] / step}


@law("prediction", 2)
def stated(case):
    """Stating the assumed software, network, or both never widens the interval."""
    options = case.without("--stack", "--node-gbps")
    try:
        report, _ = case.tpsim.simulate(options)
    except Refused as error:
        raise Skip("the assumed software refuses it") from error
    cluster = case.tpsim.show("cluster", options["--cluster"])
    statements = {"--stack": {"--stack": report["stack"]}}
    if cluster["nodes"] > 1 and cluster["inter_node"]["bandwidth"].endswith("GB/s"):
        gigabytes = float(cluster["inter_node"]["bandwidth"].split()[0])
        statements["--node-gbps"] = {"--node-gbps": f"{gigabytes * 8 * cluster['nics_per_node']:.10g}"}
    chain, so_far = [("nothing", options, report)], dict(options)
    for name in case.rng.sample(sorted(statements), len(statements)):
        so_far = {**so_far, **statements[name]}
        try:
            chain.append((name, so_far, case.tpsim.simulate(so_far)[0]))
        except Refused:
            break
    for (_, before, first), (name, after, second) in zip(chain, chain[1:]):
        case.checks += 1
        if not close(step_of(first), step_of(second)):
            yield case.violation(f"stating {name} as it is assumed changes the step",
                                 f"{step_of(first):.6g} -> {step_of(second):.6g} s", ("simulate", before),
                                 ("simulate", after))
            continue
        wide, narrow = spread(first), spread(second)
        for side in ("slow", "fast"):
            if narrow[side] > wide[side] + ROOM:
                yield case.violation(f"stating {name} widens the {side} side of the interval",
                                     f"{wide[side]:.4%} -> {narrow[side]:.4%}", ("simulate", before),
                                     ("simulate", after))
    stated_one = {**options, "--stack": report["stack"]}
    if cluster["intra_node"]["kind"].startswith("PCIe"):  # a file states its link, whose share depends on the parts
        stated_one["--cluster"] = case.changed("cluster", options["--cluster"])
    yield from parts_stated(case, stated_one)


@law("nothing", 0.5)
def own_network(case):
    """Stating a cluster's own network changes no step, with any sharing of NICs."""
    names = [name for name, one in sorted(case.catalogue.clusters.items()) if one["gpus"] > 2 * one["gpus_per_node"]]
    name = names[case.number % len(names)]
    spec = case.tpsim.show("cluster", name)
    if not spec["inter_node"]["bandwidth"].endswith("GB/s"):
        raise Skip("another unit")
    rate = float(spec["inter_node"]["bandwidth"].split()[0]) * 8 * spec["nics_per_node"]
    tp, pp, dp = case.rng.choice([1, 1, 2]), case.rng.choice([2, 3]), case.rng.choice([5, 9, 10, 12])
    options = {"--model": "gpt-1.7b", "--cluster": name, "--tp": tp, "--pp": pp, "--dp": dp, "--global-batch": 8 * dp,
               "--rank-order": case.rng.choice(["tp-dp-pp", "tp-pp-dp"]), "--attention-dropout": 0,
               "--ignore-stack-limits": None}
    before = case.tpsim.simulate(options)[0]
    stated_too = {**options, "--node-gbps": f"{rate:.10g}"}
    after = case.tpsim.simulate(stated_too)[0]
    if not close(step_of(before), step_of(after)):
        yield case.violation("stating a cluster's own network changes the step",
                             f"{step_of(before):.6g} -> {step_of(after):.6g} s", ("simulate", options),
                             ("simulate", stated_too))


def parts_stated(case, options):
    """Stating parts with the software's values, one after the
    other, never widens the interval of assumed software. Nor do parts with other values, compared with none."""
    own = case.tpsim.show("stack", options["--stack"])["parts"]
    words = case.tpsim.show("schema", "plan")["properties"]["parts"]["properties"]
    before = {name: value for name, value in options.items() if name not in {"--stack", *map(option_of, words)}}
    names = sorted(own)
    unstated = before
    try:
        all_open, _ = case.tpsim.simulate(unstated)
    except Refused:
        return
    first = all_open
    for key in case.rng.sample(names, min(3, len(names))):
        value = {True: "on", False: "off"}.get(own[key], own[key]) if isinstance(own[key], bool) else own[key]
        after = {**before, option_of(key): value}
        second = yield from narrower(case, before, first, after)
        if second:
            before, first = after, second
    others = [(key, value) for key in names for value in words[key].get("enum", []) if value != own[key]]
    for key, value in case.rng.sample(others, min(3, len(others))):
        yield from narrower(case, unstated, all_open, {**before, option_of(key): value})


def open_inputs(report):
    return {entry["what"] for entry in report.get("assumed", {}).get("open", [])}


def narrower(case, before, first, after):
    """Checks that the options `after` do not widen the interval of
    the report `first`, and returns their report. None if they are refused. The interval may be as wide as
    with all inputs stated, since the step of another part may be less certain by itself. A part that opens
    another input does not count: FlexAttention masks documents."""
    try:
        second, _ = case.tpsim.simulate(after)
    except Refused:
        return None
    if open_inputs(second) - open_inputs(first):
        return second
    case.checks += 1
    wide, narrow = spread(first), spread(second)
    if not second.get("assumed"):
        return second
    stated_pct = second["assumed"]["half_width_pct_all_stated"]
    least = {"slow": stated_pct / 100, "fast": math.log1p(stated_pct / 100)}
    for side in ("slow", "fast"):
        if narrow[side] > max(wide[side], least[side]) + ROOM:
            yield case.violation(f"stating parts widens the interval's {side} side",
                                 f"{wide[side]:.4%} -> {narrow[side]:.4%}", ("simulate", before), ("simulate", after))
    return second


@law("prediction")
def assumptions(case):
    """The report's account of assumptions agrees with
    the interval, and stating all is not wider."""
    report, _ = case.tpsim.simulate(case.without("--stack"))
    assumed = report.get("assumed")
    if not assumed:
        raise Skip("everything is stated")
    width = spread(report)["slow"] * 100
    command = "simulate", {**case.without("--stack"), "--json": None}
    if abs(assumed["half_width_pct_all_open"] - width) > 0.01 + 1e-3 * width:
        yield case.violation("the half width with all open is not the interval's",
                             f"{assumed['half_width_pct_all_open']} and {width}", command)
    if assumed["half_width_pct_all_stated"] > assumed["half_width_pct_all_open"] + ROOM:
        yield case.violation("the interval is wider with all stated", assumed, command)
    for entry in assumed["open"]:
        if entry["half_width_pct_if_stated"] > assumed["half_width_pct_all_open"] + ROOM:
            yield case.violation(f"the interval is wider with {entry['option']} stated, by the report", entry, command)


# Names of terms that are time of the network, and of the host.
OF_NETWORK = ("communication", "pipeline_transfer", "gradient_reduction", "weight_gather", "tied_embedding")
OF_HOST = ("host_wait", "host_step")
FACTS = {"rows": 5, "on": "a law", "date": "2026-01-01", "left_out_error": 0.1, "host_spread": 0.0,
         "kernel_spread": 0.1, "network_spread": 0.0}
SPREAD = 0.4


@law("prediction", 0.5)
def interval_shares(case):
    """The part of the interval from the network or the host is at most their share of the step."""
    options = case.without("--node-gbps")
    report, _ = case.tpsim.simulate(options)
    named = {**options, "--stack": report["stack"], "--profile": report["profile"]["name"]}
    step, terms = step_of(report), report["predicted"]["breakdown_s"]
    for what, kind, names in (("network", "cluster", OF_NETWORK), ("host", "stack", OF_HOST)):
        widths, asked = [], []
        for amount in (0.0, SPREAD):
            path = case.changed(kind, named[f"--{kind}"], (["calibrated"], {**FACTS, f"{what}_spread": amount}))
            asked.append({**named, f"--{kind}": path})
            predicted = case.tpsim.simulate(asked[-1])[0]["predicted"]
            widths.append(math.log(predicted["step_s_high"] / predicted["step_s"]) / HALF_OF_90)
        share = sum(time for name, time in terms.items() if any(part in name for part in names)) / step
        grown = math.sqrt(max(0.0, widths[1] ** 2 - widths[0] ** 2)) / SPREAD
        case.checks += 1
        if grown > share * 1.001 + 1e-6:
            yield case.violation(f"more of the step is uncertain by the {what} than is the {what}'s",
                                 f"{grown:.2%} and {share:.2%}", ("simulate", asked[0]), ("simulate", asked[1]))
