"""Different options with the same meaning, and options without effect."""
import json

from base import INTERVAL, LARGEST_SEARCHED, Skip, close, law, remedied, settings_of
from files import limits, saving
from program import Refused, typed, words_of


# Hashes of catalogue entries in saved plans.
CONTENTS = tuple(f"contents.{kind}" for kind in ("model", "cluster", "profile", "stack"))


def alone(report):
    """Returns whether no rank holds a copy of another rank's weights or experts."""
    return report["dp"] * report["cp"] == 1 and report["ep"] == 1 and report["etp"] in (0, report["tp"])


# Options without effect, if the condition on report and model holds.
IDLE = {
    "--cp-comm-type": lambda r, m: r["cp"] == 1, "--tp-overlap": lambda r, m: r["tp"] == 1,
    "--tp-recompute-allgather": lambda r, m: not r["sequence_parallel"],
    "--pipeline-sends": lambda r, m: r["pp"] == 1, "--p2p-calls": lambda r, m: r["pp"] == 1,
    "--overlap-p2p": lambda r, m: r["pp"] == 1, "--shard-group": lambda r, m: r["zero"] == 0,
    "--overlap-gradient-reduction": lambda r, m: alone(r), "--overlap-parameter-gather": lambda r, m: alone(r),
    "--gradient-sync": lambda r, m: r["zero"] < 2, "--reduce-dtype": lambda r, m: r["zero"] < 2,
    "--recompute-modules": lambda r, m: r["recompute"] != "selective",
    **{name: lambda r, m: not m["experts"] for name in (
        "--dispatcher", "--router-kernel", "--permute", "--expert-weighting", "--expert-load", "--ep-overlap",
        "--delay-wgrad")},
}


@law("prediction", 2)
def idle(case):
    """Options of experts in dense models, of stages with pp 1, and similar ones have no effect."""
    report, _ = case.tpsim.simulate(case.options)
    names = [name for name, holds in IDLE.items() if holds(report, case.model)]
    for name in case.rng.sample(names, min(3, len(names))):
        for value in case.catalogue.choices[name]:
            options = {**case.options, name: value}
            try:
                other, _ = case.tpsim.simulate(options)
            except Refused:
                continue  # the stack refuses the value even without effect
            case.checks += 1
            yield from case.differs(f"{name} matters where it cannot", report["predicted"], other["predicted"],
                                    ("simulate", case.options), ("simulate", options), skip=INTERVAL)


def spelled(case, report, nodes_of_plan):
    """Yields (name, options, options with the same meaning) of a scenario."""
    options = {**case.options, "--ignore-stack-limits": None}
    settings = settings_of(case, report)
    yield "settings as they are by default, stated", case.options, {**settings, **case.options}
    if case.model["experts"] and report["etp"] == 0:
        yield "an expert tensor degree of tp, stated", case.options, {**case.options, "--etp": report["tp"]}
    if alone(report) and report["offload"] == "none":
        yield "ZeRO 0 and 1 without replicas", {**options, "--zero": 0}, {**options, "--zero": 1}
    if nodes_of_plan == 1 and alone_or_dense(report):
        yield "the order of ranks on one node", {**options, "--rank-order": "tp-dp-pp"}, {**options,
                                                                                          "--rank-order": "tp-pp-dp"}


def alone_or_dense(report):
    return report["ep"] == 1 and report["etp"] in (0, report["tp"])


@law("prediction")
def spellings(case):
    """Stated defaults, ZeRO 0 and 1 without replicas, and
    the rank order on one node give the same prediction."""
    report, _ = case.tpsim.simulate(case.options)
    nodes = -(-report["gpus"] // case.cluster["gpus_per_node"])
    for what, first, second in spelled(case, report, nodes):
        try:
            before = case.tpsim.simulate(first)[0]
            after = case.tpsim.simulate(second)[0]
        except Refused:
            continue
        case.checks += 1
        yield from case.differs(f"{what}: another prediction", before["predicted"], after["predicted"],
                                ("simulate", first), ("simulate", second), skip=INTERVAL)


@law("prediction", 0.3)
def command_line(case):
    """The command line prints and saves the answer of a
    call. The exit code is 3 if the plan does not fit."""
    report, file = case.tpsim.simulate(case.options)
    words = [*words_of(case.options), "--json", "--quiet"]
    if case.model["parameters"] > LARGEST_SEARCHED:
        raise Skip("a plan that does not fit is answered with one that does, which takes long")
    path = case.written("", "saved.json")
    code, out, error = case.tpsim.command("simulate", *words, "--allow-oom", "--save", path)
    commands = [("simulate", {**case.options, "--allow-oom": None, "--json": None})]
    if code != 0:
        yield case.violation("the command refuses what a call answers", error, *commands)
        return
    yield from case.differs("the command prints another report than a call answers", report, json.loads(out), *commands,
                            rounding=0)
    with open(path, encoding="utf-8") as saved:
        yield from case.differs("the command saves another plan than a call answers", json.loads(file),
                                json.load(saved),
                                *commands, rounding=0, skip=CONTENTS)
    risk = report["predicted"]["p_oom"]
    if abs(risk - 0.5) > 1e-3:
        for name, more in (("simulate", []),
                           ("campaign", ["--tokens", "1e9", "--replays", "2", "--assumptions", "dgx-h100"])):
            code, _, error = case.tpsim.command(name, path, *more, *words_of(limits(case)), "--quiet")
            if code != (0 if risk < 0.5 else 3):
                yield case.violation(f"{name}: an exit code that is not that of the risk",
                                     f"exit code {code}, risk {risk:.4g}: {error}",
                                     saving(case), typed(name, limits(case), "p.json", *more))


@law("prediction", 0.5)
def reports_agree(case):
    """explain, compare and campaign use the step of
    simulate, and campaign's sums follow from it."""
    report, file = case.tpsim.simulate(case.options)
    own, step = limits(case), report["predicted"]["step_s"]
    explained, _ = case.tpsim.call("explain", own, file)
    commands = saving(case), typed("explain", {**own, "--json": None}, "p.json")
    yield from case.differs("explain predicts otherwise than simulate", report["predicted"],
                            explained["plan"]["predicted"], *commands)
    terms = {term["name"]: term["time_s"] for term in explained["terms"]}
    yield from case.differs("explain's terms are others than simulate's", report["predicted"]["breakdown_s"], terms,
                            *commands)
    path = case.written(file, "plan.json")
    code, out, error = case.tpsim.command("compare", path, path, "--json", "--quiet")
    if own and code == 2:
        pass  # compare respects the stack's limits
    elif code not in (0, 3):
        yield case.violation("compare refuses a plan that simulate takes", error, saving(case),
                             "tpsim compare p.json p.json")
    elif not all(close(plan["predicted"]["step_s"], step) for plan in json.loads(out)["plans"]):
        yield case.violation("compare predicts another step", "", saving(case), "tpsim compare p.json p.json")
    asked = {"--tokens": case.rng.choice(["1e9", "1e12"]), "--replays": 20, "--assumptions": "dgx-h100",
             "--price": "2USD/h",
             "--pue": 1.2, "--gpu-power": "500W", "--other-power": "300W", "--carbon": "100g/kWh", **own,
             "--allow-oom": None}
    try:
        campaign, _ = case.tpsim.call("campaign", asked, file)
    except Refused as error:
        if error.is_bug:
            yield case.violation(f"the program fails: {error.message}", error, saving(case),
                                 typed("campaign", asked, "p.json"))
        return
    yield from campaign_faults(case, report, campaign, asked)


def campaign_faults(case, report, campaign, asked):
    time, cost = campaign["time"], campaign["cost"]
    days = sum(value for name, value in time.items() if name.endswith("_days") and not name.startswith("wall"))
    hours = time["wall_days"] * 24 * report["gpus"]
    for what, got, want in (("the step", campaign["step_s"], report["predicted"]["step_s"]),
                            ("the sum of days", days, time["wall_days"]),
                            ("GPU-hours", cost["gpu_hours"], hours),
                            ("the price of the run", cost["usd_run"], 2 * cost["gpu_hours"]),
                            ("the price", cost["usd"], 2 * cost["reserved_gpu_hours"]),
                            ("the energy", cost["total_kwh"], cost["gpu_hours"] * 0.8 * 1.2),
                            ("the CO2", cost["total_co2_t"], cost["total_kwh"] * 1e-4)):
        if not close(got, want, 1e-6):
            yield case.violation(f"campaign: {what} does not follow", f"{got} and {want}", saving(case),
                                 typed("campaign", asked, "p.json"))
    if time["goodput"] > 1 + 1e-9:
        yield case.violation("campaign: a goodput beyond one", time["goodput"], saving(case),
                             typed("campaign", asked, "p.json"))


@law("search", 0.3)
def sizes_agree(case):
    """plan --gpus A,B equals plan --gpus A and plan --gpus
    B; explain's search finds the same plan as plan."""
    options = case.options
    gpus = options["--gpus"]
    one, _ = case.tpsim.plan(options)
    options = {**options, **remedied(one)}  # all sizes of a list have the same software
    code, out, error = case.tpsim.command("plan",
                                          *words_of({**options, "--gpus": f"{gpus},{2 * gpus}", "--json": None,
                                                     "--quiet": None}))
    commands = ("plan", options), ("plan", {**options, "--gpus": f"{gpus},{2 * gpus}"})
    if code in (0, 3):
        first = json.loads(out)["sizes"][0]
        if "best" not in first:
            yield case.violation("a list of sizes finds no plan for a size that has one", first, *commands)
        else:
            yield from case.differs("a list of sizes finds another plan", one["plans"][0]["predicted"],
                                    first["best"]["predicted"],
                                    *commands, skip=INTERVAL)
    elif 2 * gpus <= case.cluster["gpus"]:
        yield case.violation("a list of sizes is refused where a size is not", error, *commands)
    explained, _ = case.tpsim.call("explain", {**case.options, "--threads": 1})
    yield from case.differs("explain's search finds another plan", one["plans"][0]["predicted"],
                            explained["plan"]["predicted"],
                            ("plan", options), ("explain", case.options))
