"""Draws random scenarios that the program accepts. Every model, cluster and stack, and every
value of a setting or software part, occurs equally often. The rest of a scenario is random. The
same seed gives the same scenarios."""
import random
import re

from sample.program import in_parallel
from sample.scenarios import PREDICTION, SEARCH, Scenario

BYTES_PER_PARAMETER = 18
ATTEMPTS = 24
# Largest number of parameters for searches. Smaller models fit on few GPUs, so that a search takes
# less than a second.
LARGEST_SEARCHED = 80e9
# Options with which an option, or one of its values, has an effect.
NEEDS = {
    "--sequence-parallel": {"--tp": 2}, "--tp-overlap": {"--tp": 2},
    "--tp-recompute-allgather": {"--tp": 2, "--sequence-parallel": "on"},
    "--pipeline-sends": {"--pp": 2, "--tp": 2}, "--p2p-calls": {"--pp": 2}, "--overlap-p2p": {"--pp": 2},
    "--schedule": {"--pp": 2}, "--schedule interleaved": {"--virtual-stages": 2},
    "--cp-comm-type": {"--cp": 2}, "--data-parallel-sync": {"--dp": 2},
    "--overlap-gradient-reduction": {"--dp": 2}, "--overlap-parameter-gather": {"--dp": 2},
    "--gradient-sync": {"--dp": 2, "--zero": 2}, "--reduce-dtype": {"--dp": 2, "--zero": 2},
    "--shard-group": {"--dp": 4, "--zero": 3}, "--rank-order": {"--pp": 2, "--dp": 2},
    "--fp8-param-gather on": {"--precision": "fp8"}, "--recompute-modules": {"--recompute": "selective"},
    "--attention-kernel flash1": {"--attention": "flash"}, "--attention-kernel flash2": {"--attention": "flash"},
    "--attention-kernel flash3": {"--attention": "flash"}, "--attention-kernel cudnn": {"--attention": "flash"},
    "--attention-kernel torch": {"--attention": "unfused"}, "--optimizer-dtype bf16": {"--dtype": "bf16"},
    "--attention-kernel fused_softmax": {"--attention": "unfused"},
    "--attention-kernel megatron": {"--attention": "unfused"},
}
OF_EXPERTS = {"--dispatcher", "--router-kernel", "--permute", "--expert-weighting", "--expert-load", "--ep-overlap",
              "--delay-wgrad"}
# Values for options whose help shows a placeholder for a number or for a set of words.
NUMBERS = {"--shard-group": ["2", "4"], "--expert-load": ["1.3", "2"]}
SETS = {"--recompute-modules": ["layernorm,mlp", "core_attn,moe_act", "moe,layernorm"],
        "--cuda-graph-scope": ["attn,mlp", "attn,moe_router"]}


def choices_of(help_text):
    """Returns the values of the layout and software options whose help lists them."""
    choices, group = {}, ""
    for line in help_text.splitlines():
        if line and not line.startswith(" "):
            group = line
        match = re.match(r"  (--[a-z0-9-]+) (\S+\|\S+)", line)
        if not match or not group.startswith(("Layout", "Software")):
            continue
        option, placeholder = match.groups()
        words = placeholder.replace("[,...]", "").replace("[:N]", ":1").split("|")
        choices[option] = [word for word in words if word != "N"] + NUMBERS.get(option, []) + SETS.get(option, [])
    return choices


def cycled(values, count, rng):
    """Returns `count` values. Every value occurs equally often, in rounds of different order."""
    out = []
    while len(out) < count:
        round_of = list(values)
        rng.shuffle(round_of)
        out += round_of
    return out[:count]


class Catalogue:
    """Data of the program's catalogue and help that drawing uses."""

    def __init__(self, program):
        by_name = lambda kind: {entry["name"]: entry for entry in program.listed(kind)}
        self.models, self.clusters, self.stacks = by_name("models"), by_name("clusters"), by_name("stacks")
        profiles = by_name("profiles")
        for cluster in self.clusters.values():
            cluster["memory_gib"] = profiles[cluster["profile"]]["memory_gib"]
        _, out, _ = program.call("simulate", "--help")
        self.choices = choices_of(out)

    def featured(self):
        return [(option, value) for option, values in self.choices.items() for value in values]


def needed(option, value):
    return {**NEEDS.get(option, {}), **NEEDS.get(f"{option} {value}", {})}


class Draw:
    """Draws one scenario: tries options for the same model and cluster until the program accepts
    them."""

    def __init__(self, rng, catalogue, model, cluster):
        self.rng, self.catalogue = rng, catalogue
        self.model, self.cluster = catalogue.models[model], catalogue.clusters[cluster]

    def gpus(self):
        """Returns a power of two of GPUs on which the model is likely to fit."""
        share = self.model["parameters"] * BYTES_PER_PARAMETER / (self.cluster["memory_gib"] * 2**30)
        gpus = 1
        while gpus < share:
            gpus *= 2
        gpus *= self.rng.choice([1, 1, 2, 2, 4, 8, 16])
        while gpus > self.cluster["gpus"]:
            gpus //= 2
        return max(1, min(gpus, 8192))

    def degrees(self, least):
        rng, model, gpus = self.rng, self.model, self.gpus()
        heads = model["kv_heads"] or model["heads"] or 1
        tp = rng.choice([t for t in (1, 1, 2, 4, 8) if heads % t == 0])
        tp = max(tp, least.get("--tp", 1))
        pp = rng.choice([p for p in (1, 1, 2, 2, 4, 8, 16, 3) if p <= max(1, min(model["layers"], gpus // tp))] or [1])
        pp = max(pp, least.get("--pp", 1))
        cp = max(rng.choice([1] * 6 + [2, 4]), least.get("--cp", 1))
        dp = max(gpus // (tp * pp * cp), least.get("--dp", 1))
        return {"--tp": tp, "--pp": pp, "--dp": dp, "--cp": cp}

    def experts(self, degrees):
        if not self.model["experts"]:
            return {}
        options = {}
        ranks = degrees["--tp"] * degrees["--dp"] * degrees["--cp"]
        if degrees["--tp"] > 1 and self.rng.random() < 0.5:
            options["--etp"] = 1
        else:
            ranks //= degrees["--tp"]
        groups = [ep for ep in (1, 2, 4, 8, 16, 32, 64) if ranks % ep == 0 and self.model["experts"] % ep == 0]
        options["--ep"] = self.rng.choice(groups)
        return options

    def variants(self, degrees):
        """Returns random settings other than degrees. Omitted settings have their default."""
        rng, options = self.rng, {}
        some = lambda option, share, *values: options.update(
            {option: rng.choice(values)} if rng.random() < share else {})
        some("--zero", 0.5, 0, 2, 3)
        some("--micro-batch", 0.5, 2, 4)
        some("--recompute", 0.6, "selective", "full", f"blocks:{rng.randint(1, 2)}", "ops")
        some("--attention", 0.25, "unfused", "flash")
        some("--rank-order", 0.15, "tp-pp-dp")
        some("--offload", 0.1, "optimizer")
        some("--dtype", 0.1, "bf16", "fp16", "fp32")
        some("--gradient-dtype", 0.1, "bf16", "fp16", "fp32")
        some("--precision", 0.25, *self.catalogue.choices["--precision"])
        some("--seq", 0.2, 1024, 2048, 8192, 32768)
        some("--attention-dropout", 0.5, 0)
        some("--node-gbps", 0.1, 200, 800)
        if degrees["--tp"] > 1:  # MoE models need it
            some("--sequence-parallel", 1 if self.model["experts"] else 0.6, "on")
        if degrees["--pp"] > 1:
            some("--virtual-stages", 0.3, 2, 3)
        return options

    def parts(self):
        """Returns random software parts in addition to the featured one."""
        rng, choices = self.rng, self.catalogue.choices
        names = [name for name in choices if name.startswith("--") and name not in LAYOUT_WORDS
                 and (self.model["experts"] or name not in OF_EXPERTS)]
        return {name: rng.choice(choices[name]) for name in rng.sample(names, rng.choice([0, 0, 0, 1, 2]))}

    def options(self, stack, featured, ignores_limits):
        least = needed(*featured) if featured else {}
        degrees = self.degrees(least)
        drawn = {"--model": self.model["name"], "--cluster": self.cluster["name"]}
        if stack:
            drawn["--stack"] = stack
        drawn.update({name: value for name, value in degrees.items() if value > 1})
        drawn.update(self.experts(degrees))
        drawn.update(self.variants(degrees))
        drawn.update(self.parts())
        drawn.update({name: value for name, value in least.items() if name not in degrees})
        if featured:
            drawn[featured[0]] = featured[1]
        chunks = degrees["--pp"] if drawn.get("--virtual-stages", 1) != 1 else 1
        batches = self.rng.choice([1, 2, 4, 8]) * max(chunks, self.rng.choice([1, degrees["--pp"]]))
        drawn["--global-batch"] = degrees["--dp"] * drawn.get("--micro-batch", 1) * batches
        if ignores_limits:
            drawn["--ignore-stack-limits"] = None
        return drawn


LAYOUT_WORDS = {"--recompute", "--sequence-parallel", "--attention", "--schedule", "--rank-order", "--offload",
                "--dtype", "--gradient-dtype", "--precision", "--fp8-param-gather", "--zero"}


def accepted_prediction(draw, stack, featured, program):
    """Returns options that the program accepts, or None. Late attempts omit the featured value,
    and the last ones also the stack."""
    for attempt in range(ATTEMPTS):
        options = draw.options(stack if attempt < ATTEMPTS - 4 else "",
                               featured if attempt < ATTEMPTS - 8 else None, attempt >= 6)
        if program.predict(Scenario("", options)).code == 0:
            return options
    return None


def search_options(draw, stack, rng):
    gpus = min(draw.gpus() * rng.choice([1, 2, 4, 8]), draw.cluster["gpus"], 256)
    options = {"--model": draw.model["name"], "--cluster": draw.cluster["name"], "--gpus": gpus,
               "--global-batch": gpus * rng.choice([1, 2, 4])}
    if stack:
        options["--stack"] = stack
    for option, share, values in (("--tp", 0.5, ["1,2", "2,4", "8", "4,8"]), ("--micro-batch", 0.6, ["1", "1,2"]),
                                  ("--zero", 0.5, ["1", "0,1", "2,3", "3"]), ("--seq", 0.2, [2048, 8192]),
                                  ("--recompute", 0.3, ["full", "none,selective"]), ("--cp", 0.6, ["1", "1,2"]),
                                  ("--precision", 0.2, ["fp8", "none,mxfp8"]), ("--max-oom", 0.1, ["1%", "50%"]),
                                  ("--objective", 0.3, ["memory", "cost", "energy"]), ("--offload", 0.2, ["none"]),
                                  ("--exclude", 0.1, ["zero=3", "recompute=full"])):
        if rng.random() < share:
            options[option] = rng.choice(values)
    return options


def accepted_search(draw, stack, rng, program):
    for attempt in range(ATTEMPTS):
        options = search_options(draw, stack if attempt < ATTEMPTS // 2 else "", rng)
        answer = program.search(Scenario("", options))
        few = answer.report is not None and answer.report["search"]["considered"] < 200000
        if few and answer.code in ((0, 3) if attempt == 0 else (0,)):
            return options
    return None


def drawn_scenarios(program, predictions, searches, seed):
    """Returns the scenarios in the order of their ids."""
    catalogue = Catalogue(program)
    rng = random.Random(seed)
    count = predictions + searches
    searched = [name for name, model in sorted(catalogue.models.items()) if model["parameters"] < LARGEST_SEARCHED]
    columns = [cycled(values, count, rng) for values in (
        sorted(catalogue.clusters), [*sorted(catalogue.stacks)] * 4 + [""] * 16, catalogue.featured())]
    columns.insert(0, cycled(sorted(catalogue.models), predictions, rng) + cycled(searched, searches, rng))

    def one(place):
        model, cluster, stack, featured = (column[place] for column in columns)
        own = random.Random(f"{seed} {place}")
        draw = Draw(own, catalogue, model, cluster)
        if place >= predictions:
            return accepted_search(draw, stack, own, program)
        if featured[0] in OF_EXPERTS and not draw.model["experts"]:
            featured = None
        return accepted_prediction(draw, stack, featured, program)

    scenarios, counts = [], {PREDICTION: 0, SEARCH: 0}
    for place, options in enumerate(in_parallel(one, range(count))):
        kind, digits = (PREDICTION, 4) if place < predictions else (SEARCH, 3)
        if options is None:
            print(f"no scenario for {columns[0][place]} on {columns[1][place]}")
            continue
        counts[kind] += 1
        scenarios.append(Scenario(f"{kind}{counts[kind]:0{digits}}", options))
    return scenarios, catalogue


def coverage_text(scenarios, catalogue):
    """Returns a text with the frequencies of values, and the values that never occur."""
    seen = {}
    for scenario in scenarios:
        for option, value in scenario.options.items():
            seen[option, str(value)] = seen.get((option, str(value)), 0) + 1
    wanted = [("--model", name) for name in catalogue.models] + [("--cluster", name) for name in catalogue.clusters]
    wanted += [("--stack", name) for name in catalogue.stacks] + catalogue.featured()
    missing = [f"{option} {value}" for option, value in wanted if (option, value) not in seen]
    least = min((seen[pair], pair) for pair in wanted if pair in seen)
    return (f"{len(wanted) - len(missing)} of {len(wanted)} values come up, the rarest {least[0]} times "
            f"({' '.join(least[1])})" + (f"\nnever: {'; '.join(missing)}" if missing else ""))
