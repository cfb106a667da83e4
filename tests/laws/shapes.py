"""Changed models: one expert compared with a dense layer,
fewer key/value heads, brute-force searches of tiny models."""
import itertools
import math

from base import Skip, law
from machines import worse
from program import Refused
from searches import divisors

DENSE = ("llama-3-8b", "llama-2-7b", "gpt-7.5b", "qwen3-8b", "mistral-7b-v0.3")
# Tolerance for rounding in kernel models, relative to the step.
ROOM = 1e-3


@law("nothing", 0.4)
def one_expert(case):
    """A mixture with one expert has the parameters of
    the dense layer plus a router, and is not faster."""
    name = case.rng.choice([name for name in DENSE if name in case.catalogue.models])
    model = case.tpsim.show("model", name)
    tp = case.rng.choice([1, 2, 4])
    options = {"--cluster": case.rng.choice(["dgx-h100", "dgx-a100", "dgx-b200"]), "--attention-dropout": 0,
               "--stack": case.rng.choice(["megatron-core", "reference", "nemo"]), "--tp": tp, "--seq": 4096,
               "--dp": case.rng.choice([1, 2]), "--micro-batch": case.rng.choice([1, 2]),
               "--sequence-parallel": "on" if tp > 1 else "off", "--ignore-stack-limits": None}
    experts = {"count": 1, "per_token": 1, "capacity_factor": 1, "extras": {"dropless": case.rng.random() < 0.5}}
    dense = {**options, "--model": name}
    one = {**options, "--model": case.changed("model", name, (["experts"], experts))}
    before, after = (case.tpsim.simulate(some)[0] for some in (dense, one))
    extra = after["parameters"] - before["parameters"] - model["layers"] * model["hidden"]
    if extra and not model["linear_bias"]:
        yield case.violation("a mixture of one expert has other parameters than the dense layer and a router", extra,
                             ("simulate", dense), ("simulate", one))
    a, b = (report["predicted"]["step_s"] for report in (before, after))
    if b < a * (1 - ROOM):
        yield case.violation("a mixture of one expert is faster than the dense layer", f"{a:.6g} and {b:.6g} s",
                             ("simulate", dense), ("simulate", one))


@law("nothing", 0.7)
def fewer_heads(case):
    """Half the key/value heads are never slower or larger, and have no more parameters."""
    name = case.rng.choice(sorted(case.catalogue.models))
    model, tp = case.tpsim.show("model", name), case.rng.choice([1, 1, 2])
    heads = model["attention"]["kv_heads"]
    if "blocks" in model or heads % (2 * tp) or model["attention"].get("extras", {}).get("latent"):
        raise Skip("no fewer heads")
    options = {"--model": name, "--cluster": case.rng.choice(sorted(case.catalogue.clusters)), "--tp": tp,
               "--sequence-parallel": "on" if tp > 1 else "off", "--attention": case.rng.choice(["flash", "unfused"]),
               "--attention-dropout": 0, "--micro-batch": case.rng.choice([1, 2]),
               "--seq": case.rng.choice([2048, 4096]),
               "--ignore-stack-limits": None}
    fewer = {**options, "--model": case.changed("model", name, (["attention", "kv_heads"], heads // 2))}
    before, after = case.tpsim.simulate(options)[0], case.tpsim.simulate(fewer)[0]
    commands = ("simulate", options), ("simulate", fewer)
    for found, text in worse(before, after):
        yield case.violation(f"fewer key/value heads: {found}", text, *commands)
    if after["parameters"] > before["parameters"]:
        yield case.violation("fewer key/value heads: more parameters", after["parameters"], *commands)


# ---- brute force
TINY = {"layers": (2, 3, 4), "ffn_hidden": (1024, 2048), "vocab": (8192,)}
LEAST_POSITIONS = 512  # minimum for a context-parallel rank, in a search


def cuts(layers, stages, chunks):
    """Yields even stage layers, with and without counting embedding and head as a block each."""
    number = stages * chunks
    for ends in (0, 2):
        share, left = divmod(layers + ends, number)
        cut = [share] * number
        if ends:
            cut[0] -= 1
            cut[-1] -= 1
        first = (number - left) // 2
        for place in range(first, first + left):
            cut[place] += 1
        if min(cut) >= 0:
            yield cut


def layouts(gpus, batch, layers):
    """Yields every layout of a dense model, as options."""
    for tp in divisors(gpus):
        for pp in divisors(gpus // tp):
            dp = gpus // tp // pp
            if pp > layers or batch % dp:
                continue
            for micro, chunks, zero in itertools.product(divisors(batch // dp), (1, 2) if pp > 1 else (1,), range(4)):
                for sp, attention in itertools.product(("on", "off") if tp > 1 else ("off",), ("flash", "unfused")):
                    for cut in cuts(layers, pp, chunks):
                        again = ["none", "full"] + (["selective"] if attention == "unfused" else [])
                        again += [f"blocks:{count}" for count in range(1, max(cut))]
                        for recompute in again:
                            yield {"--tp": tp, "--pp": pp, "--dp": dp, "--micro-batch": micro, "--zero": zero,
                                   "--virtual-stages": chunks, "--sequence-parallel": sp, "--attention": attention,
                                   "--recompute": recompute, "--stage-layers": ",".join(map(str, cut)),
                                   "--schedule": "interleaved" if chunks > 1 else "1f1b"}


@law("nothing", 0.15)
def enumerated(case):
    """No layout of a tiny model fits in the allowed memory
    and is faster than the best plan of the search."""
    changes = [([key], case.rng.choice(values)) for key, values in TINY.items()]
    layers = changes[0][1]
    options = {"--model": case.changed("model", "llama-3.2-1b", *changes), "--cp": 1, "--seq": 1024,
               "--cluster": case.rng.choice(["dgx-h100", "dgx-a100"]), "--global-batch": case.rng.choice([4, 6, 8]),
               "--stack": case.rng.choice(["megatron-core", "reference", "torchtitan"])}
    question = {**options, "--gpus": case.rng.choice([2, 4])}
    fast, small = (case.tpsim.plan({**question, "--top": 1, **more})[0]["plans"][0]
                   for more in ({}, {"--objective": "memory"}))
    least, most = (plan["predicted"]["memory_gib"]["peak"] for plan in (small, fast))
    limit = math.inf
    if case.rng.random() < 0.5 and most > least:
        limit = least + (most - least) * case.rng.random()
        question["--max-memory"] = f"{limit:.4f}GiB"
    best = case.tpsim.plan({**question, "--top": 1})[0]["plans"][0]
    step = best["predicted"]["step_s"]
    for layout in layouts(question["--gpus"], question["--global-batch"], layers):
        if case.rng.random() > 0.2:
            continue
        try:
            report, _ = case.tpsim.simulate({**options, **layout})
        except Refused as error:
            if error.is_bug:
                raise
            continue
        case.checks += 1
        found = report["predicted"]
        if found["step_s"] < step * (1 - 1e-9) and found["p_oom"] <= 0.05 and \
                found["memory_gib"]["peak"] <= limit * (1 - 1e-6):
            yield case.violation("a layout is faster than the best found", f"{step:.6g} and {found['step_s']:.6g} s",
                                 ("plan", question), ("simulate", {**options, **layout}))
