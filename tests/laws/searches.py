"""Searches: no legal plan is better than the result,
and more freedom or a better machine never hurts."""
import json
import math

from base import Skip, close, law, settings_of
from machines import HOST_ROOM, better
from program import Refused, words_of

LISTS = {"--tp": ("1,2", "1,2,4,8"), "--pp": ("1,2", "1,2,4"), "--zero": ("0,1", "0,1,2,3"), "--cp": ("1", "1,2"),
         "--recompute": ("none,full", "none,selective,full,blocks"), "--micro-batch": ("1-2", "1-8"),
         "--attention": ("flash", "unfused,flash"), "--offload": ("none", "none,optimizer"),
         "--schedule": ("1f1b", "1f1b,gpipe,interleaved"), "--precision": ("none", "none,fp8")}
FREED = {"--tp": "2", "--pp": "2", "--zero": "1", "--recompute": "full", "--micro-batch": "1", "--attention": "unfused",
         "--virtual-stages": "1", "--rank-order": "tp-dp-pp", "--sequence-parallel": "off", "--exclude": "zero=3"}


def best(case, options):
    """Returns (best plan, report); (None, None) if no plan fits or is legal."""
    try:
        report, _ = case.tpsim.plan({**options, "--top": 1})
    except Refused as error:
        if error.is_bug:
            raise
        return None, None
    return report["plans"][0], report


def never_slower(case, kind, before, after, room=1e-9):
    """Yields at most one violation: the best plan with
    `after` is slower than with `before` by more than `room`, or missing.
    An offloaded plan that the search added may be replaced by a plan that is faster than the slow
    end of its interval."""
    first, report = best(case, before)
    if first is None:
        return
    second, _ = best(case, after)
    case.checks += 1
    commands = ("plan", before), ("plan", after)
    if second is None:
        yield case.violation(f"{kind}: nothing is found any more", "", *commands)
        return
    a, b = (plan["predicted"]["tokens_per_s"] for plan in (first, second))
    if first["offload"] != "none" and report["search"]["offload"] != "as_asked":
        a *= first["predicted"]["step_s"] / first["predicted"]["step_s_high"]
    if b < a * (1 - room):
        yield case.violation(f"{kind}: tokens/s fall", f"{a:.8g} -> {b:.8g} tokens/s ({b / a - 1:+.3%})", *commands)


@law("search", 0.6)
def more_freedom(case):
    """A longer list, or one constraint fewer, never lowers the best plan's tokens/s."""
    kind = case.rng.choice(["list", "constraint"])
    if kind == "list":
        name = case.rng.choice(sorted(LISTS))
        short, long = LISTS[name]
        yield from never_slower(case, f"a longer list of {name}", {**case.options, name: short},
                                {**case.options, name: long})
    else:
        name = case.rng.choice(sorted(FREED))
        yield from never_slower(case, f"{name} left free", {**case.without(name), name: FREED[name]},
                                case.without(name))


@law("search", 0.6)
def more_machine(case):
    """More GPU memory, bandwidth, allowed memory or allowed risk never lowers the best tokens/s."""
    found, report = best(case, case.options)
    if found is None:
        raise Skip("nothing is found")
    named = {**case.options, "--stack": report["stack"], "--profile": report["profile"]["name"]}
    what = case.rng.choice(["memory", "bandwidth between nodes", "bandwidth within nodes", "memory allowed", "risk",
                            "ends"])
    factor = case.rng.choice([1.05, 1.25, 2])
    if what == "memory":
        after = {**named, "--profile": better(case, "profile", named["--profile"], "device.memory", factor)}
        yield from never_slower(case, "more GPU memory", named, after)
    elif what.startswith("bandwidth"):
        knob = "inter_node.bandwidth" if "between" in what else "intra_node.bandwidth"
        after = {**named, "--cluster": better(case, "cluster", named["--cluster"], knob, factor)}
        yield from never_slower(case, f"more {what}", named, after, HOST_ROOM)
    elif what == "memory allowed":
        capacity = found["predicted"]["memory_gib"]["capacity"]
        yield from never_slower(case, "more memory allowed", {**named, "--max-memory": f"{capacity * 0.6:.2f}GiB"},
                                {**named, "--max-memory": f"{capacity * 0.9:.2f}GiB"})
    elif what == "risk":
        yield from never_slower(case, "more risk accepted", {**named, "--max-oom": "1%"}, {**named, "--max-oom": "20%"})
    else:
        yield from never_slower(case, "shorter end stages allowed", {**named, "--uneven-ends": 0},
                                {**named, "--uneven-ends": 2})


@law("search", 0.5)
def more_gpus(case):
    """Twice the GPUs never lower the best tokens/s, with twice
    the batch, or with the same batch if it fills them."""
    gpus, batch = case.options["--gpus"], case.options["--global-batch"]
    node = case.cluster["gpus_per_node"]
    if 2 * gpus > case.cluster["gpus"] or (2 * gpus > node and 2 * gpus % node):
        raise Skip("the cluster has no more")
    if gpus <= node < 2 * gpus:
        raise Skip("the job leaves the node, and the network is slower than the links in the node")
    grown = {**case.options, "--gpus": 2 * gpus, "--global-batch": 2 * batch}
    yield from never_slower(case, "twice the GPUs and the batch", case.options, grown)


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def neighbour(case, plan):
    """Returns random settings near a plan. The degrees use the same number of GPUs."""
    rng, model = case.rng, case.model
    gpus, batch = plan["tp"] * plan["pp"] * plan["dp"] * plan["cp"], plan["global_batch"]
    settings = settings_of(case, plan)
    for name in ("--global-batch", "--dtype", "--gradient-dtype", "--precision", "--fp8-param-gather", "--offload"):
        settings.pop(name)
    for group in rng.sample(("degrees", "chunks", "micro", "zero", "attention", "order", "recompute", "experts"),
                            rng.choice([1, 1, 2, 3])):
        if group == "degrees":
            tp = rng.choice(divisors(gpus))
            pp = rng.choice([d for d in divisors(gpus // tp) if d <= model["layers"]])
            settings.update({"--tp": tp, "--pp": pp, "--dp": gpus // tp // pp, "--cp": 1, "--virtual-stages": 1,
                             "--micro-batch": 1,
                             "--ep": 1, "--etp": 0, "--sequence-parallel": rng.choice(["on", "off"])
                             if tp > 1 else "off"})
        elif group == "chunks" and settings["--pp"] > 1:
            settings["--virtual-stages"] = rng.choice([1, 2, 3])
        elif group == "micro":
            settings["--micro-batch"] = rng.choice(divisors(max(1, batch // settings["--dp"])))
        elif group == "zero":
            settings["--zero"] = rng.randint(0, 3)
        elif group == "attention":
            settings["--attention"] = rng.choice(["flash", "unfused"])
        elif group == "order":
            settings["--rank-order"] = rng.choice(["tp-dp-pp", "tp-pp-dp"])
        elif group == "recompute":
            settings["--recompute"] = rng.choice(["none", "selective", "full", "blocks:1", "blocks:2"])
        elif group == "experts" and model["experts"]:
            settings["--etp"] = rng.choice([0, 1])
            settings["--ep"] = rng.choice(divisors(math.gcd(settings["--dp"], model["experts"])))
    settings["--schedule"] = "interleaved" if settings["--virtual-stages"] > 1 else rng.choice(["1f1b", "1f1b",
                                                                                                "gpipe"])
    if settings["--pp"] * settings["--virtual-stages"] != len(plan["stage_layers"]):
        settings.pop("--stage-layers")
    if not model["experts"]:
        settings.pop("--ep"), settings.pop("--etp")
    return settings


SEARCHED_BY_CHOICE = ("--tp", "--pp", "--dp", "--cp", "--ep", "--etp", "--zero", "--micro-batch", "--virtual-stages",
                      "--recompute",
                      "--sequence-parallel", "--attention", "--schedule", "--rank-order", "--offload")


@law("search", 0.6)
def optimal(case):
    """No plan near the best one, with settings of the search, fits and is faster."""
    options = case.without("--precision", *SEARCHED_BY_CHOICE)
    found, report = best(case, options)
    if found is None or found["offload"] != "none":
        raise Skip("nothing to compare with")
    own = {name: value for name, value in options.items() if name not in ("--gpus", "--global-batch")}
    own["--global-batch"] = found["global_batch"]
    for _ in range(20):
        settings = {**own, **neighbour(case, found)}
        try:
            other, _ = case.tpsim.simulate(settings)
        except Refused:
            continue
        case.checks += 1
        predicted = other["predicted"]
        is_searched = not (other["recompute"] == "selective" and other["attention"] == "flash"
                           or other["schedule"] == "gpipe" and other["pp"] == 1)
        is_faster = predicted["step_s"] < found["predicted"]["step_s"] * (1 - 1e-9)
        if is_searched and is_faster and predicted["p_oom"] <= 0.05:
            yield case.violation("a plan that fits is faster than the best found",
                                 f"{found['predicted']['step_s']:.6g} and {predicted['step_s']:.6g} s",
                                 ("plan", options), ("simulate", settings))


@law("search", 0.5)
def certificate(case):
    """The certificate adds up, and plans are sorted and fit.
    --top, --threads and the order of lists do not matter."""
    report, _ = case.tpsim.plan({**case.options, "--top": 8})
    search, steps = report["search"], [plan["predicted"]["step_s"] for plan in report["plans"]]
    command = "plan", {**case.options, "--top": 8}
    if search["considered"] != search["feasible"] + sum(search["pruned"].values()):
        yield case.violation("considered is not feasible and pruned", search, command)
    if search["simulated"] > search["feasible"]:
        yield case.violation("more is simulated than is feasible", search, command)
    if steps != sorted(steps):
        yield case.violation("plans are not sorted", steps, command)
    if any(plan["predicted"]["p_oom"] > 0.05 + 1e-9 for plan in report["plans"]):
        yield case.violation("a listed plan is riskier than is accepted", "", command)
    variants = {"--top": {"--top": 3}, "--threads": {"--top": 8, "--threads": 2}}
    for name, more in variants.items():
        case.checks += 1
        other, _ = case.tpsim.plan({**case.options, **more})
        yield from case.differs(f"{name} changes the plans", report["plans"][:len(other["plans"])], other["plans"],
                                command,
                                ("plan", {**case.options, **more}), rounding=0, skip=("p_best_is_faster", "ties"))
    name = case.rng.choice([n for n in ("--zero", "--tp", "--attention", "--recompute") if n not in case.options])
    values = LISTS[name][1].split(",")
    ordered, turned = ({**case.options, name: ",".join(order), "--top": 8} for order in (values, values[::-1]))
    try:
        a, b = case.tpsim.plan(ordered)[0], case.tpsim.plan(turned)[0]
    except Refused:
        return
    yield from case.differs(f"the order of {name} changes the plans", a["plans"], b["plans"], ("plan", ordered),
                            ("plan", turned), rounding=0)


@law("search", 0.3)
def fronts(case):
    """A front holds the fastest and the smallest plan, and no plan of it dominates another."""
    code, out, error = case.tpsim.command("plan",
                                          *words_of({**case.options, "--pareto": None, "--json": None,
                                                     "--quiet": None, "--threads": 1}))
    if code != 0:
        yield case.violation("no front where there is a plan", error, ("plan", {**case.options, "--pareto": None}))
        return
    report = json.loads(out)
    front = report["plans"]
    points = [(plan["predicted"]["step_s"], plan["predicted"]["memory_gib"]["peak"]) for plan in front]
    command = "plan", {**case.options, "--pareto": None}
    for point in points:
        if any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points):
            yield case.violation("a plan of the front is beaten by another one of it", point, command)
    # The report states that plans with offload were not searched.
    searched = {"--offload": "none"} if report["search"]["leaves_out_offload"] else {}
    fastest, _ = best(case, {**case.options, **searched})
    if not close(min(points)[0], fastest["predicted"]["step_s"]):
        yield case.violation("the front lacks the fastest plan",
                             f"{min(points)[0]} and {fastest['predicted']['step_s']}", command, ("plan", case.options))
    smallest, _ = best(case, {**case.options, "--objective": "memory"})
    least = min(point[1] for point in points)
    if not close(least, smallest["predicted"]["memory_gib"]["peak"]):
        yield case.violation("the front lacks the smallest plan",
                             f"{least} and {smallest['predicted']['memory_gib']['peak']}", command,
                             ("plan", {**case.options, "--objective": "memory"}))
