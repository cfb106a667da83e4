"""Converts a report to its recorded form: numbers by id, and the program of a rank as lines of
ids."""
import hashlib
import math

GIB = 2.0**30
PREDICTED = ("step_s", "step_s_low", "step_s_high", "hw_tflops_per_gpu", "model_tflops_per_gpu", "mfu",
             "tokens_per_s", "bubble_fraction", "p_oom")
MEMORY = ("capacity", "peak", "host_of_node")
HEAD = ("parameters", "active_parameters", "gpus")
PROGRAM, CODE = "program", "exit_code"


def number(value):
    """Formats integers without a point, and other numbers as the shortest text that reads back
    as the same value."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def key(names, name):
    return names.id_of("key", name)


def run_numbers(plan, names):
    """Returns the numbers of a plan and its prediction."""
    predicted, memory = plan["predicted"], plan["predicted"]["memory_gib"]
    numbers = {key(names, name): number(predicted[name]) for name in PREDICTED}
    for name in MEMORY:
        numbers[key(names, "memory." + name)] = number(memory[name] * GIB)
    for name, share in predicted["sources"].items():
        numbers[key(names, "sources." + name)] = number(share)
    for term, seconds in predicted["breakdown_s"].items():
        if seconds != 0:
            numbers[names.id_of("term", term)] = number(seconds)
    # Memory is summed over all stages, so that a small change in any stage is visible.
    for category in memory["by_stage"][0]:
        if category not in ("stage", "total"):
            total = math.fsum(stage[category] * GIB for stage in memory["by_stage"])
            if total != 0:
                numbers[names.id_of("memory", category)] = number(total)
    return numbers


def prediction_numbers(answer, names):
    """Returns the numbers of a prediction by id, and the lines of its program."""
    numbers = {key(names, CODE): str(answer.code)}
    if answer.report is None or "programs" not in answer.report:
        return numbers, []
    for name in HEAD:
        numbers[key(names, name)] = number(answer.report[name])
    numbers.update(run_numbers(answer.report["plan"], names))
    lines = program_lines(answer.report["programs"], names)
    numbers[key(names, PROGRAM)] = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    return numbers, lines


def search_numbers(answer, names):
    """Returns the numbers of a search by id. The ids of the first plans start with "1.", "2.",
    ..."""
    numbers = {key(names, CODE): str(answer.code)}
    if answer.report is None or "plans" not in answer.report:
        return numbers
    search = answer.report["search"]
    for name in ("considered", "feasible", "simulated"):
        numbers[key(names, "search." + name)] = str(search[name])
    for reason, count in search["pruned"].items():
        numbers[names.id_of("reason", reason)] = str(count)
    for place, plan in enumerate(answer.report["plans"], 1):
        numbers[f"{place}.{key(names, 'plan')}"] = plan_text(plan, names)
        for name in ("step_s", "p_oom"):
            numbers[f"{place}.{key(names, name)}"] = number(plan["predicted"][name])
        peak = plan["predicted"]["memory_gib"]["peak"]
        numbers[f"{place}.{key(names, 'memory.peak')}"] = number(peak * GIB)
    return numbers


def plan_text(plan, names):
    """Returns the settings of a plan as ids of options and values: "o5:8+o10:o10v3"."""
    settings = []
    for name, value in plan.items():
        if isinstance(value, dict) or name in ("p_best_is_faster", "ties"):
            continue
        option = "--" + name.replace("_", "-")
        text = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        if isinstance(value, list):
            text = ",".join(str(one) for one in value)
        settings.append(f"{names.id_of('option', option)}:{names.value_id(option, text)}")
    return "+".join(settings)


def program_lines(programs, names):
    lines = []
    for part in programs:
        words = [names.id_of("part", part["part"]), f"count={part['count']}"]
        if "block" in part:
            words += [f"block={part['block']}", f"recomputed={int(part['recomputed'])}"]
        lines.append(" ".join(words))
        for phase in part["phases"]:
            lines.append(names.id_of("phase", phase["phase"]))
            lines += folded([event_line(event, names) for event in phase["events"]])
    return lines


def folded(lines):
    """Merges equal consecutive lines into one line with a count."""
    out = []
    for line in lines:
        if out and out[-1][0] == line:
            out[-1][1] += 1
        else:
            out.append([line, 1])
    return [line if count == 1 else f"{line} *{count}" for line, count in out]


def event_line(event, names):
    label = names.id_of("label", event["label"]) if event["label"] else "-"
    if "op" in event:
        words = [names.id_of("op", event["op"]), names.id_of("dtype", event["dtype"]),
                 "x".join(str(dim) for dim in event["dims"]), f"v{event['variant']}", f"n{event['kernels']}",
                 f"f{event['flops']:.12g}", f"b{event['bytes']:.12g}", label]
        return " ".join(words + ([names.id_of("pass", event["pass"])] if "pass" in event else []))
    if "collective" in event:
        words = [names.id_of("collective", event["collective"]), names.id_of("group", event["group"]),
                 str(event["ranks"]), f"b{event['bytes']}", label]
        return " ".join(words + (["start"] if "starts" in event else []))
    if "waits_for" in event:
        return f"wait {label}"
    if "copy" in event:
        return f"copy n{event['copy']:.12g} b{event['bytes']:.12g} {label}"
    if "host" in event:
        return f"host t{event['time_s']:.12g} s{int(event['synchronizes'])} {label}"
    sign = {"allocate": "+", "free": "-"}[event["memory"]]
    return " ".join([sign, names.id_of("category", event["category"]), f"b{event['bytes']}", label])
