"""Questions about plans: why not, what if, whole runs."""
import math

from base import Skip, close, law, option_of
from files import limits, saving
from program import Refused, typed

ASKED = ("tp=2", "pp=2", "zero=0", "zero=3", "recompute=full", "micro_batch=2", "attention=unfused", "dp=2",
         "tp=2,pp=2",
         "sequence_parallel=on", "recompute=none", "rank_order=tp-pp-dp", "schedule=gpipe")


@law("search", 0.4)
def why_not(case):
    """Why-not compares with the best plan that has the requested
    settings, and its waterfall adds up to the difference of steps."""
    asked = case.rng.choice(ASKED)
    held = {"--" + pair.split("=")[0].replace("_", "-"): pair.split("=")[1] for pair in asked.split(",")}
    options = case.without("--objective", *held)
    try:  # both sides have the same software
        whole, _ = case.tpsim.plan({**options, "--top": 1})
        fixed = {**whole["search"]["held_fixed"], **whole.get("parts_searched", [{}])[0].get("parts", {})}
        options = {**{option_of(part): word for part, word in fixed.items()}, **options}
    except Refused:
        raise Skip("no plan") from None
    try:
        answer, _ = case.tpsim.call("explain", {**options, "--why-not": asked, "--threads": 1})
    except Refused as error:
        if error.is_bug:
            raise
        answer = {}
    if "waterfall" not in answer:
        raise Skip("no plan has it")
    command = "explain", {**options, "--why-not": asked}
    best, other = (answer[name]["predicted"]["step_s"] for name in ("best", "other"))
    total = sum(term["difference_s"] for term in answer["waterfall"])
    if abs(total - (other - best)) > 1e-8 * best:
        yield case.violation("the waterfall does not add up", f"{total} and {other - best}", command)
    for pair in asked.split(","):
        key, value = pair.split("=")
        got = answer["other"][key]
        if {True: "on", False: "off"}.get(got, str(got)) != value and str(got) != value:
            yield case.violation("the other plan has not what was asked for", f"{key} is {got}", command)
    if other < best * (1 - 1e-9):
        yield case.violation("the other plan is faster than the best", f"{best:.6g} and {other:.6g} s", command)
    try:
        found, _ = case.tpsim.plan({**options, **held, "--top": 1})
    except Refused:
        return
    if not close(found["plans"][0]["predicted"]["step_s"], other):
        yield case.violation("the other plan is not the best that has it",
                             f"{other:.6g} and {found['plans'][0]['predicted']['step_s']:.6g} s",
                             command, ("plan", {**options, **held}))


@law("prediction", 0.2)
def what_if(case):
    """The what-if analysis starts from the plan's own step, and
    10 % more of a beneficial constant never makes it longer."""
    report, file = case.tpsim.simulate(case.options)
    if report["gpus"] > 16 or case.model["parameters"] > 15e9:
        raise Skip("a long search")
    commands = saving(case), typed("explain", {**limits(case), "--what-if": None, "--json": None}, "p.json")
    answer, _ = case.tpsim.call("explain", {**limits(case), "--what-if": None}, file)
    if not close(answer["plan"]["predicted"]["step_s"], report["predicted"]["step_s"]):
        yield case.violation("what-if starts from another step", answer["plan"]["predicted"]["step_s"], *commands)
    for entry in answer["sensitivities"]:
        costs = any(word in entry["constant"] for word in ("latency", "host time", "jitter"))
        if report["dtype"] == "fp32" and entry["constant"].endswith("memory bandwidth"):
            continue  # machines.ANCHORED_IN_FP32
        room = 1e-4 if report["cp"] > 1 else 1e-6  # as in machines.better_machine
        if (-entry["change"] if costs else entry["change"]) > room:
            yield case.violation(f"10 % more {entry['constant']} is {'faster' if costs else 'slower'}",
                                 f"{entry['change']:+.4%}", *commands)


# (option, better value, quantity that must not grow)
EASIER = (("--restart-time", "1min", "wall_days"), ("--node-mtbf", "100000h", "wall_days"),
          ("--storage-bandwidth", "1000GB/s", "wall_days"),
          ("--checkpoint", "async", "wall_days"), ("--spare-nodes", "16", "wall_days"),
          ("--repair-time", "1h", "wall_days"))


@law("prediction", 0.4)
def campaigns(case):
    """Fewer failures, faster restarts and storage, or more
    spares never end later. More tokens never end sooner."""
    _, file = case.tpsim.simulate(case.options)
    asked = {"--tokens": case.rng.choice(["1e10", "1e12"]), "--replays": 200,
             "--assumptions": case.rng.choice(["dgx-h100", "jean-zay-a100"]),
             "--spare-nodes": case.rng.choice([0, 2]), **limits(case), "--allow-oom": None}
    before, _ = case.tpsim.call("campaign", asked, file)
    changes = [(option, value, -1) for option, value, _ in EASIER] + [("--tokens", "2e12", 1)]
    for option, value, sign in changes:
        case.checks += 1
        try:
            after, _ = case.tpsim.call("campaign", {**asked, option: value}, file)
        except Refused:
            continue
        a, b = before["time"]["wall_days"], after["time"]["wall_days"]
        waits = max(before["time"]["waiting_days"], after["time"]["waiting_days"]) > 0
        errors = sum(one["replays"]["standard_error_days"] for one in (before, after)) if waits else 0
        if sign * (b - a) < -(1e-9 * a + 4 * errors):
            yield case.violation(f"{option}: {'more, and sooner' if sign > 0 else 'better, and later'} at its end",
                                 f"{a:.6g} -> {b:.6g} days", saving(case), typed("campaign", asked, "p.json"),
                                 typed("campaign", {**asked, option: value}, "p.json"))


@law("nothing", 0.3)
def goals(case):
    """A campaign meets its deadline, no cheaper size meets
    it as surely, and a later deadline costs no more."""
    tokens = case.rng.choice([1e10, 1e11])
    asked = {"--model": case.rng.choice(["llama-3-8b", "gpt-7.5b", "qwen3-8b", "mixtral-8x7b", "llama-3.2-3b"]),
             "--cluster": case.rng.choice(["dgx-h100", "dgx-a100", "dgx-b200"]), "--gpus": "8,16,32,64",
             "--global-batch": case.rng.choice([128, 256]), "--tokens": f"{tokens:g}", "--replays": 50, "--threads": 1}
    days = tokens / 4e9 / case.rng.choice([1, 2, 4, 8, 16])
    soon, late = ({**asked, "--deadline": f"{days * hours:.1f}h"} for hours in (24, 48))
    try:
        first, _ = case.tpsim.call("campaign", soon)
    except Refused as error:
        raise Skip("the deadline is missed") from error
    goal, time = first["goal"], first["time"]
    command = "campaign", soon
    if time["wall_days"] > days * (1 + 1e-3):
        yield case.violation("a campaign that meets its deadline ends after it", f"{time['wall_days']} and {days} days",
                             command)
    if goal["standing"] == "sure" and time["wall_days_high"] > days * (1 + 1e-3):
        yield case.violation("a sure campaign may end after its deadline", f"{time['wall_days_high']} and {days} days",
                             command)
    cheaper = [size for size in goal["sizes"] if size.get("standing") == "sure"
               and size.get("usd", math.inf) < first["cost"]["usd"] * (1 - 1e-9)]
    if goal["standing"] == "sure" and cheaper:
        yield case.violation("a cheaper size is as sure", cheaper[0], command)
    try:
        second, _ = case.tpsim.call("campaign", late)
    except Refused as error:
        yield case.violation("a later deadline is missed", error, command, ("campaign", late))
        return
    if goal["standing"] == second["goal"]["standing"] and \
            second["cost"]["usd"] > first["cost"]["usd"] * (1 + 1e-9):
        yield case.violation("a later deadline costs more", f"{first['cost']['usd']} and {second['cost']['usd']} USD",
                             command, ("campaign", late))
