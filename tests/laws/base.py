"""Laws: a law is a function that yields the violations of a random case, registered with @law.

A family's file holds only laws and their helpers.
The runner draws cases and shrinks failing ones."""
import json
import os
import random
import shlex
import time
import zlib

from program import Refused, typed
from sample.drawing import ATTEMPTS, OF_EXPERTS, Draw

ROUNDING = 1e-9  # tolerated relative difference of two computations of one number
SHRINK_S = 40
# Random searches use few GPUs and a model that fits, so that a search takes about a second.
LARGEST_SEARCHED = 15e9
SEARCHED_GPUS = [2, 4, 8, 8, 16]


class Skip(Exception):
    """The law does not apply to this case."""


class Violation:
    """A contradiction. `kind` names it without numbers of the case; `commands` reproduce it."""

    def __init__(self, kind, text, *commands):
        self.kind, self.text, self.commands = kind, str(text), commands


class Law:
    def __init__(self, function, draws, weight):
        self.name, self.function, self.draws, self.weight = function.__name__, function, draws, weight
        self.says = " ".join(function.__doc__.split())


LAWS = []


def law(draws="prediction", weight=1.0):
    """Registers a law. `draws`: "prediction" or "search" for scenarios that the
    program accepts, or "nothing". `weight`: number of cases relative to --cases."""
    def register(function):
        LAWS.append(Law(function, draws, weight))
        return function
    return register


class Case:
    """Arguments of a law: random options, a random
    generator, the program, and a folder for files."""

    def __init__(self, tpsim, catalogue, folder, seed, options, number):
        self.tpsim, self.catalogue, self.folder, self.seed, self.number = tpsim, catalogue, folder, seed, number
        self.options = options
        self.rng = random.Random(f"{seed} law")
        self.checks, self.preparation = 1, []

    def again(self, options):
        """Returns the same case with other options. The law's
        random generator starts again from the same seed."""
        return Case(self.tpsim, self.catalogue, self.folder, self.seed, options, self.number)

    @property
    def model(self):
        return self.catalogue.models[self.options["--model"]]

    @property
    def cluster(self):
        return self.catalogue.clusters[self.options["--cluster"]]

    def without(self, *names):
        return {name: value for name, value in self.options.items() if name not in names}

    def written(self, text, name):
        """Writes `text` to a file of this case; returns the path."""
        path = os.path.join(self.folder, f"{zlib.crc32(text.encode()):08x}-{name}")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def changed(self, kind, name, *changes):
        """Writes a changed catalogue entry; returns the path.
        Changes are (place, value); a place is a list of keys."""
        entry = self.tpsim.show(kind, name)
        assigned = ""
        for place, value in changes:
            at = entry
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = value
            assigned += "; d" + "".join(f"[{key!r}]" for key in place) + f" = {value!r}"
        path = self.written(json.dumps(entry), f"{kind}.json")
        self.preparation.append(f"tpsim show {kind} {name} | python3 -c \"import json, sys; d = json.load(sys.stdin)"
                                f"{assigned}; print(json.dumps(d))\" > {os.path.basename(path)}")
        return path

    def violation(self, kind, text, *commands):
        """Returns a violation; commands are texts, or (name of the command, options, words...)."""
        lines = [line if isinstance(line, str) else typed(line[0], line[1], *line[2:]) for line in commands]
        used = " ".join(lines)
        made = [line for line in dict.fromkeys(self.preparation) if line.rsplit("> ", 1)[1] in used]
        return Violation(kind, text, *made, *[line.replace(self.folder + "/", "") for line in lines])

    def differs(self, kind, before, after, *commands, rounding=ROUNDING, skip=()):
        """Yields at most one violation, with the first differences of two documents."""
        found = differences(before, after, rounding, skip)
        if found:
            yield self.violation(kind, "; ".join(f"{path}: {a} and {b}" for path, a, b in found[:3]), *commands)


def close(a, b, rounding=ROUNDING):
    return a == b or abs(a - b) <= rounding * max(abs(a), abs(b))


def leaves(value, path=""):
    """Yields the leaves of a document as (path, leaf)."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def differences(before, after, rounding=ROUNDING, skip=()):
    """Returns (path, value before, value after) of differing
    leaves, without paths that end as one of `skip`."""
    a, b = dict(leaves(before)), dict(leaves(after))
    out = []
    for path in [*a, *(path for path in b if path not in a)]:
        x, y = a.get(path), b.get(path)
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (x, y))
        if not path.endswith(tuple(skip)) and not (close(x, y, rounding) if numbers else x == y):
            out.append((path, x, y))
    return out


INTERVAL = ("step_s_low", "step_s_high")


def remedied(report):
    """Returns the options with which a plan was found where no plan fits with the defaults."""
    words = shlex.split(report.get("remedy", "").partition("planned with ")[2])
    return dict(zip(words[::2], words[1::2]))


def settings_of(case, report):
    """Returns the settings of a report as options."""
    options = {}
    for key in case.catalogue.settings:
        value = report[key]
        if isinstance(value, bool):
            value = "on" if value else "off"
        elif isinstance(value, list):
            value = ",".join(map(str, value))
        elif value == "blocks":
            value = f"blocks:{report['recompute_blocks']}"
        if key != "recompute_blocks":
            options[option_of(key)] = value
    return options


# The parts whose option names do not follow from their keys.
OTHER_NAMES = {"cuda_graphs": "--cuda-graph-scope", "optimizer_kind": "--optimizer"}


def option_of(key):
    return OTHER_NAMES.get(key, "--" + key.replace("_", "-"))


def parts_of(saved):
    """Returns the parts in a plan file as options."""
    return {option_of(key): {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
            for key, value in saved.get("parts", {}).items()}


# ---- drawing and running
def drawn_prediction(tpsim, catalogue, rng):
    """Returns options that tpsim simulate accepts."""
    draw = Draw(rng, catalogue, rng.choice(sorted(catalogue.models)), rng.choice(sorted(catalogue.clusters)))
    stack = rng.choice(sorted(catalogue.stacks)) if rng.random() < 0.6 else ""
    featured = rng.choice(catalogue.featured()) if rng.random() < 0.7 else None
    if featured and featured[0] in OF_EXPERTS and not draw.model["experts"]:
        featured = None
    for attempt in range(ATTEMPTS):
        options = draw.options(stack if attempt < ATTEMPTS - 4 else "",
                               featured if attempt < ATTEMPTS - 8 else None, attempt >= 6)
        try:
            tpsim.simulate(options)
            return options
        except Refused as error:
            if error.is_bug:
                return options
    raise Skip("no legal scenario")


def drawn_search(tpsim, catalogue, rng):
    """Returns options of tpsim plan for a short search that finds a plan."""
    small = [name for name, model in sorted(catalogue.models.items()) if model["parameters"] < LARGEST_SEARCHED]
    options = {"--model": rng.choice(small), "--cluster": rng.choice(sorted(catalogue.clusters))}
    cluster = catalogue.clusters[options["--cluster"]]
    options["--gpus"] = rng.choice([n for n in SEARCHED_GPUS if n <= cluster["gpus"]
                                    and (n < cluster["gpus_per_node"] or n % cluster["gpus_per_node"] == 0)] or [1])
    options["--global-batch"] = options["--gpus"] * rng.choice([1, 2, 4, 6])
    if rng.random() < 0.5:
        options["--stack"] = rng.choice(sorted(catalogue.stacks))
    for option, share, values in (
            ("--seq", 0.4, [1024, 2048, 8192]), ("--precision", 0.25, ["fp8", "none,fp8", "none,mxfp8", "fp8-block"]),
            ("--attention-dropout", 0.5, [0]), ("--gradient-dtype", 0.1, ["bf16"]), ("--dtype", 0.1, ["fp16", "fp32"]),
            ("--recompute", 0.2, ["full", "none,selective", "none,full"]), ("--zero", 0.3, ["1", "0,1", "2,3", "3"]),
            ("--tp", 0.3, ["1,2", "2,4"]), ("--micro-batch", 0.3, ["1", "1,2"]), ("--cp", 0.5, ["1"])):
        if rng.random() < share:
            options[option] = rng.choice(values)
    names = [name for name in catalogue.parts if name in catalogue.choices and (catalogue.models[options["--model"]]["experts"]
             or name not in OF_EXPERTS)]
    for name in rng.sample(names, rng.choice([0, 0, 1, 2])):
        options[name] = rng.choice(catalogue.choices[name])
    for attempt in range(3):
        try:
            tpsim.plan(options)
            return options
        except Refused as error:
            if error.is_bug:
                return options
        options = {name: value for name, value in options.items() if attempt == 0 or name in KEPT}
        if attempt == 0:
            options["--ignore-stack-limits"] = None
    raise Skip("no search that finds something")


def drawn_case(law_, tpsim, catalogue, folder, seed, number):
    key = f"{seed} {law_.name} {number}"
    rng = random.Random(key)
    draws = {"prediction": drawn_prediction, "search": drawn_search, "nothing": lambda *_: {}}
    return Case(tpsim, catalogue, folder, key, draws[law_.draws](tpsim, catalogue, rng), number)


def violations(law_, case):
    """Yields the law's violations of a case. A bug of the program counts as one."""
    try:
        yield from law_.function(case)
    except Refused as error:
        if not error.is_bug:
            raise Skip(error.message) from error
        name = "plan" if law_.draws == "search" else "simulate"
        yield case.violation(f"the program fails: {error.message}", error, (name, case.options))


# ---- smaller examples
KEPT = ("--model", "--cluster", "--gpus", "--global-batch")
OF_BATCH = ("--dp", "--pp", "--micro-batch", "--virtual-stages")
DEGREES = ("--dp", "--pp", "--tp", "--cp", "--ep", "--global-batch")


def smaller(options):
    """Yields the options with one of them removed or lowered."""
    for name in options:
        if name not in KEPT:
            less = {other: value for other, value in options.items() if other != name}
            if name in OF_BATCH and "--gpus" not in options:
                yield {other: value for other, value in less.items() if other != "--global-batch"}
            yield less
    for name in DEGREES:
        value = str(options.get(name, 1))
        if value.isdigit() and int(value) > 1:
            for lower in sorted({1, 2, int(value) // 2}):
                if lower < int(value):
                    yield {**options, name: lower}


def shrunk(law_, case, found):
    """Returns the smallest violating case of the same
    kind that is found within SHRINK_S seconds."""
    ends = time.monotonic() + SHRINK_S
    improves = bool(case.options)
    while improves and time.monotonic() < ends:
        improves = False
        for options in smaller(case.options):
            if time.monotonic() > ends:
                break
            try:
                attempt = case.again(options)
                same = [one for one in violations(law_, attempt) if one.kind == found.kind]
            except (Skip, KeyError, ValueError, IndexError):
                continue
            if same:
                case, found, improves = attempt, same[0], True
                break
    return found
