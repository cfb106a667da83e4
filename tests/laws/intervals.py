"""90 % intervals: what is stated never widens them."""
from base import Skip, close, law, option_of
from program import Refused

ROOM = 1e-6
# The software that might have been meant has the stated part too, which may move one of its steps a little away.
PART_ROOM = 0.02


def step_of(report):
    return report["predicted"]["step_s"]


def spread(report):
    """The interval's slow and fast side as shares of the step."""
    predicted = report["predicted"]
    step = predicted["step_s"]
    return {"slow": predicted["step_s_high"] / step - 1, "fast": 1 - predicted["step_s_low"] / step}


@law("prediction", 2)
def stated(case):
    """Stating the software, the network, or both as they are assumed never widens the interval."""
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
    yield from parts_stated(case, stated_one)


def parts_stated(case, options):
    """A part stated as the software has it never widens the interval of assumed software."""
    own = case.tpsim.show("stack", options["--stack"])["parts"]
    open_options = {name: value for name, value in options.items() if name != "--stack"}
    wide = spread(case.tpsim.simulate(open_options)[0])
    for key in case.rng.sample(sorted(own), min(3, len(own))):
        value = {True: "on", False: "off"}.get(own[key], own[key]) if isinstance(own[key], bool) else own[key]
        after = {**open_options, option_of(key): value}
        if option_of(key) in open_options:
            continue
        try:
            narrow = spread(case.tpsim.simulate(after)[0])
        except Refused:
            continue
        case.checks += 1
        for side in ("slow", "fast"):
            if narrow[side] > wide[side] + PART_ROOM:
                yield case.violation(f"stating {option_of(key)} as assumed widens the interval's {side} side",
                                     f"{wide[side]:.4%} -> {narrow[side]:.4%}", ("simulate", open_options),
                                     ("simulate", after))


@law("prediction")
def assumptions(case):
    """The report's account of what is assumed is the interval: with all open as printed, no wider with all stated."""
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
