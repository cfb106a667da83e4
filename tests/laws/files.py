"""Plans and catalogue entries in files read back as written."""
import json
import os

from base import INTERVAL, law, parts_of, remedied, settings_of
from program import Refused, typed

SEARCH_ONLY = ("--gpus", "--top", "--precision", "--threads", "--objective", "--max-memory", "--max-oom", "--exclude")


def limits(case):
    return {"--ignore-stack-limits": None} if "--ignore-stack-limits" in case.options else {}


def saving(case, options=None):
    return "simulate", {**(options or case.options), "--allow-oom": None, "--save": "p.json"}


@law("search", 0.5)
def listed_plans(case):
    """A listed plan has the same step, memory and risk when it is simulated from its file and from its settings."""
    report, files = case.tpsim.plan({**case.options, "--top": 12})
    own = case.without(*SEARCH_ONLY)
    searched = report.get("parts_searched")
    if searched:
        own.update(parts_of(searched[0]))
    own.update(remedied(report))
    for place, (plan, file) in enumerate(zip(report["plans"], files)):
        case.checks += 1
        commands = ("plan", {**case.options, "--top": 12, "--save": "p.json"}), typed("simulate", limits(case),
                                                                                      "p.json")
        try:
            again, _ = case.tpsim.simulate(limits(case), file)
            yield from case.differs("a plan's file is another plan", plan["predicted"], again["predicted"], *commands,
                                    skip=INTERVAL if place else ())
        except Refused as error:
            yield case.violation("a plan's file is refused", error, *commands)
        options = {**own, **settings_of(case, plan)}
        try:
            again, _ = case.tpsim.simulate(options)
            yield from case.differs("a plan's settings are another plan", plan["predicted"], again["predicted"],
                                    ("plan", {**case.options, "--top": 12}), ("simulate", options), skip=INTERVAL)
        except Refused as error:
            yield case.violation("a plan's settings are refused", error, ("plan", {**case.options, "--top": 12}),
                                 ("simulate", options))


def restatements(case, saved, report):
    """Returns options that repeat the values of a plan file."""
    options = {"--cluster": saved["cluster"], "--stack": saved["stack"], "--profile": saved["profile"],
               "--seq": saved["model"]["seq"], "--attention-dropout": saved["model"].get("attention_dropout", 0),
               **settings_of(case, report), **parts_of(saved)}
    if not {"--seq", "--attention-dropout"} & set(case.options):
        options["--model"] = case.options["--model"]
    if saved.get("network"):
        options["--node-gbps"] = saved["network"]["node_gbps"]
    return options


@law("prediction", 0.4)
def restated(case):
    """Options that repeat the values of a saved plan change nothing."""
    _, file = case.tpsim.simulate(case.options)
    report, again = case.tpsim.simulate(limits(case), file)
    saved = json.loads(again)
    for name, value in restatements(case, saved, report).items():
        case.checks += 1
        commands = saving(case), typed("simulate", {**limits(case), name: value}, "p.json")
        try:
            other, _ = case.tpsim.simulate({**limits(case), name: value}, file)
        except Refused as error:
            yield case.violation(f"{name} as in the file is refused", error, *commands)
            continue
        yield from case.differs(f"{name} as in the file changes the plan", report["predicted"], other["predicted"],
                                *commands,
                                skip=INTERVAL if name in STATED else ())


# Options for inputs that were assumed. Stating them may narrow the interval.
STATED = ("--cluster", "--stack", "--profile", "--node-gbps", "--model")


@law("prediction", 0.5)
def own_parts(case):
    """A stated part equal to the stack's own value changes no prediction."""
    report, _ = case.tpsim.simulate(case.options)
    stack = case.tpsim.show("stack", report["stack"])
    own = parts_of(stack)
    if stack.get("compiles_loss") and case.options.get("--compile") == "on":
        own.pop("--logits-dtype", None)  # torch.compile has another one
    if case.options.get("--finetune") == "qlora":
        own.pop("--base-dtype", None)  # the stack's own is that of whole training
    for name, value in own.items():
        if name in case.options:
            continue
        case.checks += 1
        options = {**case.options, "--stack": report["stack"], name: value}
        commands = ("simulate", {**case.options, "--stack": report["stack"]}), ("simulate", options)
        try:
            other, _ = case.tpsim.simulate(options)
        except Refused as error:
            yield case.violation(f"{name} as the stack has it is refused", error, *commands)
            continue
        yield from case.differs(f"{name} as the stack has it changes the step", report["predicted"], other["predicted"],
                                *commands, skip=INTERVAL)


@law("search", 0.4)
def searched_anew(case):
    """A search from a saved plan keeps its fixed settings, and finds no slower plan."""
    report, files = case.tpsim.plan(case.options)
    first = report["plans"][0]
    again, _ = case.tpsim.plan(limits(case), files[0])
    commands = ("plan", {**case.options, "--save": "p.json"}), typed("plan", limits(case), "p.json")
    for key in ("precision", "dtype", "gradient_dtype", "fp8_param_gather", "global_batch"):
        if first[key] != again["plans"][0][key]:
            yield case.violation(f"a search from a saved plan loses {key}",
                                 f"{first[key]} and {again['plans'][0][key]}",
                                 *commands)
    for key in ("model", "cluster", "stack"):
        if report[key] != again[key]:
            yield case.violation(f"a search from a saved plan loses {key}", f"{report[key]} and {again[key]}",
                                 *commands)
    before, after = (plan["predicted"]["step_s"] for plan in (first, again["plans"][0]))
    if after > before * (1 + 1e-9):
        yield case.violation("a search from a saved plan finds a slower one", f"{before:.6g} s and {after:.6g} s",
                             *commands)


def schema_faults(value, schema, path=""):
    """Yields where a document violates its schema,
    for the keywords that `tpsim show schema` uses."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "number": (int, float)}
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(isinstance(value, kinds[name]) and (name in ("boolean",) or not isinstance(value, bool))
                         for name in names if name in kinds):
        yield f"{path} is not of type {'/'.join(names)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is {value!r}, of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path} is {value!r}, not {schema['const']!r}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{path} is {value}, out of range"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                yield f"{path}.{key} is missing"
        for key, item in value.items():
            if key in known:
                yield from schema_faults(item, known[key], f"{path}.{key}")
            elif schema.get("additionalProperties") is False:
                yield f"{path}.{key} is not in the schema"
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for place, item in enumerate(value):
            yield from schema_faults(item, schema["items"], f"{path}[{place}]")


@law("nothing")
def catalogue_files(case):
    """A catalogue entry is valid by its schema, and
    unchanged when it is shown from its own file."""
    kind = sorted(case.catalogue.files)[case.number % 4]
    names = case.catalogue.files[kind]
    name = names[case.number // 4 % len(names)]
    entry = case.tpsim.show(kind, name)
    commands = f"tpsim show {kind} {name} > f.json", f"tpsim show {kind} f.json"
    for fault in schema_faults(entry, case.tpsim.show("schema", kind)):
        yield case.violation(f"a {kind} of the catalogue is not valid by its schema", f"{name}: {fault}", *commands)
    path = case.written(json.dumps(entry), f"{kind}.json")
    code, out, error = case.tpsim.command("show", kind, path)
    if code != 0:
        yield case.violation(f"a {kind} of the catalogue is refused as a file", error, *commands)
    else:
        yield from case.differs(f"a {kind} shown from its file differs", entry, json.loads(out), *commands, rounding=0)


@law("prediction")
def saved_plans(case):
    """A saved plan is valid by its schema, has the same text
    after loading and saving, and the same prediction."""
    report, file = case.tpsim.simulate(case.options)
    commands = saving(case), typed("simulate", {**limits(case), "--save": "q.json"}, "p.json")
    for fault in schema_faults(json.loads(file), case.tpsim.show("schema", "plan")):
        yield case.violation("a saved plan is not valid by its schema", fault, *commands)
    again, text = case.tpsim.simulate(limits(case), file)
    yield from case.differs("a saved plan is saved as another one", json.loads(file), json.loads(text), *commands,
                            rounding=0)
    yield from case.differs("a saved plan predicts otherwise", report["predicted"], again["predicted"], *commands)


@law("prediction", 0.5)
def entries_as_files(case):
    """A model, cluster, stack or profile in a file gives the same prediction as by name."""
    report, _ = case.tpsim.simulate(case.options)
    named = {**case.options, "--stack": report["stack"], "--profile": report["profile"]["name"]}
    before, _ = case.tpsim.simulate(named)
    for kind in ("model", "cluster", "stack", "profile"):
        case.checks += 1
        name = named[f"--{kind}"]
        path = case.written(json.dumps(case.tpsim.show(kind, name)), f"{kind}.json")
        commands = (f"tpsim show {kind} {name} > {os.path.basename(path)}", ("simulate", named),
                    ("simulate", {**named, f"--{kind}": path}))
        try:
            after, _ = case.tpsim.simulate({**named, f"--{kind}": path})
        except Refused as error:
            yield case.violation(f"a {kind} by its file is refused", error, *commands)
            continue
        yield from case.differs(f"a {kind} by its file predicts otherwise than by name", before["predicted"],
                                after["predicted"], *commands, skip=INTERVAL)
