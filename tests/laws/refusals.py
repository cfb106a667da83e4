"""Refusals: a suggested number is the nearest one, and a suggested value removes the error."""
import re

from base import Skip, law
from program import Refused

WRONG = {"--tp": (3, 5, 6, 16), "--pp": (5, 7, 64), "--dp": (3, 5, 7, 33), "--ep": (3, 5, 6, 16), "--cp": (3, 5),
         "--micro-batch": (3, 5, 7),
         "--global-batch": (1, 7, 13, 100), "--virtual-stages": (3, 7), "--seq": (1000, 131), "--zero": (2, 3),
         "--schedule": ("interleaved", "gpipe"),
         "--recompute": ("blocks:99", "half"), "--attention": ("unfused", "flsh"), "--dtype": ("fp64", "fp32"),
         "--precision": ("fp6", "nvfp4", "mxfp8", "fp8"), "--stage-layers": ("1,2", "5"),
         "--rank-order": ("tp-pp-dp", "dp-tp-pp"),
         "--sequence-parallel": ("on", "yes"), "--offload": ("optimizer",), "--fp8-param-gather": ("on",),
         "--node-gbps": (0, -3)}
# The number in a hint, and its option.
NEAREST = re.compile(r"(.*?)(\d+) is not divisible by (.*) \(?the nearest valid global batch is (\d+)")


def mended(options, changed, error):
    """Returns options with the hint's value; nothing if the hint has no value for the option."""
    by_name = re.search(r"nearest (?:valid )?(\w+)(?: that [a-z ]+)? is (\d+)", error.hint)
    if by_name and by_name[1] != "that":
        return {**options, "--" + by_name[1].replace("_", "-"): by_name[2]}
    for text in re.findall(r"(?:use|choose|write|did you mean|valid global batch is|choose from) '?([\w.:-]+)'?",
                           error.hint):
        if text in ("ZeRO",):
            match = re.search(r"use ZeRO (\d)", error.hint)
            return {**options, "--zero": match[1]} if match else None
        if "global batch" in error.message:
            return {**options, "--global-batch": text}
        return {**options, changed: text}
    return None


@law("prediction", 2)
def hints(case):
    """A wrong value is refused with a hint, and the hint's value removes the error."""
    name = case.rng.choice(sorted(WRONG))
    options = {**case.options, name: case.rng.choice(WRONG[name])}
    try:
        case.tpsim.simulate(options)
    except Refused as refused:
        error = refused
    else:
        raise Skip("it is legal")
    if error.is_bug:
        raise error
    command = "simulate", options
    says_what_is_needed = any(word in error.message for word in ("cannot run", " need", "stage_layers"))
    if not error.hint and not says_what_is_needed:
        without_numbers = re.split(r"[\d']", error.message)[0].strip()
        yield case.violation(f"a refusal without a hint: {without_numbers}", error, command)
    match = re.search(r"(\d+) is not divisible by .*= ([\d x]+)$", error.message)
    nearest = re.search(r"nearest valid global batch is (\d+)", error.hint)
    if match and nearest and "global batch" in error.message:
        product = 1
        for factor in match[2].split(" x "):
            product *= int(factor)
        value, said = int(match[1]), int(nearest[1])
        below, above = value // product * product, -(-value // product) * product
        if said % product or abs(said - value) > min(value - below if below else product, above - value):
            yield case.violation("a nearer multiple exists", error, command)
    again = mended(options, name, error)
    if again is None:
        return
    try:
        case.tpsim.simulate(again)
    except Refused as second:
        if second.message == error.message:
            yield case.violation("the hint's value is refused for the same reason", error, command, ("simulate", again))


@law("nothing", 0.3)
def why_nothing(case):
    """A search that finds nothing for lack of memory
    finds a plan on a GPU with 64 times the memory."""
    name = case.rng.choice([model for model in sorted(case.catalogue.models)
                            if case.catalogue.models[model]["parameters"] > 20e9
                            and not case.catalogue.models[model]["experts"]])
    options = {"--model": name, "--cluster": "dgx-h100", "--gpus": case.rng.choice([1, 2]), "--global-batch": 8,
               "--seq": 1024, "--attention-dropout": 0}
    try:
        case.tpsim.plan(options)
    except Refused as error:
        if error.kind != "does_not_fit":
            raise Skip("refused") from error
    else:
        raise Skip("something fits")
    profile = case.changed("profile", "h100-sxm", (["device", "memory"], "20000 GiB"))
    try:
        case.tpsim.plan({**options, "--profile": profile})
    except Refused as error:
        if error.kind == "does_not_fit":
            yield case.violation("no memory is enough", error, ("plan", options),
                                 ("plan", {**options, "--profile": profile}))
