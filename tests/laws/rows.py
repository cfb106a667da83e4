"""The walk: every value of every setting and part, for all readers.

Rows and values come from the program's schemas and help. New rows are
walked without a change here, unless their values are numbers that no help
lists. Then the walk fails and names the row until VALUES has an entry.
"""
import json
import pathlib

from base import Skip, close, differences, law, option_of, settings_of
from files import saving
from launches import LAUNCHERS, STACKS, brought_back, comparable
from program import Refused, typed
from sample.drawing import OF_EXPERTS, needed

# Values of rows whose values the program does not list. None: the row is part of another row.
VALUES = {"--tp": [2], "--pp": [2], "--dp": [4], "--cp": [2], "--ep": [2], "--etp": [1], "--micro-batch": [2],
          "--virtual-stages": [2], "--global-batch": [32], "--lora-rank": [8], "--lora-alpha": [16], "--lora-dropout": [5], "--stage-layers": ["9,7"], "--recompute-blocks": None}
# Machines and models: a value is walked with the first one that accepts it.
MODEL = {"--model": "llama-3.2-1b", "--cluster": "dgx-h100", "--seq": 2048, "--global-batch": 16}
PLACES = ({}, {"--cluster": "dgx-b200"}, {"--model": "qwen3-30b-a3b"},
          {"--model": "qwen3-30b-a3b", "--cluster": "dgx-b200"},
          {"--model": "deepseek-v2-lite"}, {"--model": "nemotron-h-8b"}, {"--model": "gpt-1.7b"},
          {"--model": "gpt-1.7b", "--attention-dropout": 0})
MORE_NEEDS = {"--ep": {"--dp": 4}, "--etp": {"--tp": 2, "--dp": 2, "--ep": 2, "--sequence-parallel": "on"},
              "--virtual-stages": {"--pp": 2},
              "--stage-layers": {"--pp": 2}, "--fp8-param-gather off": {"--precision": "fp8"}, "--zero": {"--dp": 4},
              "--precision": {"--dp": 2}}


def values_of(catalogue, option, row):
    """Returns the values to walk. Skips a row that is part of another row."""
    if option in catalogue.choices:
        return catalogue.choices[option]
    if option in VALUES:
        return VALUES[option]
    if row.get("type") == "boolean":
        return ["on", "off"]
    return row.get("enum", [])


# "counted" needs expert counts in the model's file; embedding and head are trained together only.
NOT_WALKED = (("--expert-load", "counted"), ("--trained-parts", "embedding"), ("--trained-parts", "head"))


def walk(catalogue):
    """Returns (option, value) of all rows; the value is None for a row without known values."""
    rows = [(option_of(key), row) for key, row in {**catalogue.settings, **catalogue.part_rows}.items()]
    return [(option, value) for option, row in rows if VALUES.get(option, 0) is not None
            for value in values_of(catalogue, option, row) or [None] if (option, value) not in NOT_WALKED]


def placed(case, option, value, launcher_stack=None):
    """Returns (options without the row, with it) that the program can
    predict. Skips if a launcher's stack never accepts the value."""
    least = {**MORE_NEEDS.get(option, {}), **MORE_NEEDS.get(f"{option} {value}", {}), **needed(option, value)}
    for place in PLACES:
        base = {**MODEL, **place, "--dp": 2, **least}
        if option in OF_EXPERTS and not case.catalogue.models[base["--model"]]["experts"]:
            continue
        if case.catalogue.models[base["--model"]]["experts"] and int(base.get("--tp", 1)) > 1:
            base["--sequence-parallel"] = "on"
        base.update({"--stack": launcher_stack}
                    if launcher_stack else {"--stack": "megatron-core", "--ignore-stack-limits": None})
        if option == "--stage-layers":
            layers = case.catalogue.models[base["--model"]]["layers"]
            value = f"{layers // 2 + 1},{layers - layers // 2 - 1}"
        base.pop(option, None)
        options = {**base, option: value}
        try:
            case.tpsim.simulate(options)
            case.tpsim.simulate(base)
            return base, options
        except Refused as error:
            if error.is_bug:
                raise
    raise Skip(f"{option} {value} is accepted nowhere")


# ---- readers: each yields (text, commands...) of a fault
def saved_plan(case, base, options, row, value):
    """A saved plan keeps the value and has the same prediction."""
    report, file = case.tpsim.simulate(options)
    again, text = case.tpsim.simulate({"--ignore-stack-limits": None}, file)
    if json.loads(file) != json.loads(text):
        yield "is lost by saving and loading", saving(case, options), typed("simulate", {"--save": "q.json"}, "p.json")
    if not close(again["predicted"]["step_s"], report["predicted"]["step_s"]):
        yield "predicts otherwise from a saved plan", saving(case, options), typed("simulate", {}, "p.json")
    stated = {**json.loads(file).get("parts", {}), **json.loads(file)["plan"]}
    own = case.tpsim.show("stack", options["--stack"])["parts"]
    if row not in stated and row not in own:
        yield "is not in a saved plan", saving(case, options)


def question_of(case, options, report):
    """Returns the search whose only layout is the report's."""
    question = {**options, **settings_of(case, report), "--gpus": report["gpus"], "--top": 50, "--group": "none",
                "--max-oom": "99%"}
    question.pop("--stage-layers")  # a search divides the stages itself
    return question


def search(case, base, options, row, value):
    """A search over the values with and without the row lists the plan of simulate.
    Caches must not confuse the values, and pruning must not remove the requested one."""
    report, before = case.tpsim.simulate(options)[0], case.tpsim.simulate(base)[0]
    mine, other = settings_of(case, report), settings_of(case, before)
    option = option_of(row)
    question = question_of(case, options, report)
    changed = [name for name in mine if mine[name] != other[name]]
    if changed == [option] and option in question and option != "--global-batch":  # plan takes one batch
        question[option] = f"{other[option]},{mine[option]}"
    own = case.tpsim.show("stack", options["--stack"])["parts"]
    if row in own and "," not in str(value) and "enum" in case.catalogue.part_rows[row]:
        question[option] = f"{own[row]},{value}"
    try:
        found, files = case.tpsim.plan(question)
    except Refused as error:
        if error.kind != "does_not_fit" or report["predicted"]["p_oom"] < 0.9:
            yield f"is refused by plan: {error}", ("plan", question), ("simulate", options)
        return
    # A search takes other parts of the software that are faster.
    chosen = found.get("parts_searched", [{}])[0].get("parts", {})
    others = {option_of(part): word for part, word in chosen.items() if part != row and part not in options}
    if others:
        report = case.tpsim.simulate({**options, **others})[0]
    listed = False
    for plan, file in zip(found["plans"], files):
        saved = json.loads(file)
        again, _ = case.tpsim.simulate({"--ignore-stack-limits": None}, file)
        for what in ("step_s", "memory_gib"):
            if differences(plan["predicted"][what], again["predicted"][what]):
                yield f"is another {what} in a search than in its file", ("plan", {**question, "--save": "p.json"}), \
                    typed("simulate", {}, "p.json")
        is_mine = all(plan[key] == report[key] for key in case.catalogue.settings)
        listed |= is_mine or plan["stage_layers"] != report["stage_layers"] or row in own
        if is_mine and saved.get("parts", {}).get(row, own.get(row)) == part_value(value, own.get(row)):
            for what in ("step_s", "memory_gib"):
                if differences(plan["predicted"][what], report["predicted"][what]):
                    yield f"is another {what} in a search", ("plan", question), ("simulate", options)
    # A search may leave out plans that are not faster with the value.
    is_fastest = report["predicted"]["step_s"] < found["plans"][0]["predicted"]["step_s"] * (1 - 1e-9)
    if not listed and is_fastest and report["predicted"]["p_oom"] < 0.9:
        yield "is left out by a search that asks for it", ("plan", question), ("simulate", options)


def part_value(word, own):
    """Converts a part's value to its form in files; nothing if the stack has no such part."""
    if own is None:
        return None
    return {"on": True, "off": False}.get(word, word) if isinstance(own, bool) else word


def other_searches(case, base, options, row, value):
    """The searches of explain and campaign find the same step time as the search of plan."""
    report, _ = case.tpsim.simulate(options)
    question = {**question_of(case, options, report), "--top": 1, "--max-oom": "50%"}
    try:
        best, _ = case.tpsim.plan(question)
    except Refused:
        return
    step = best["plans"][0]["predicted"]["step_s"]
    asked = {name: given for name, given in question.items() if name not in ("--top", "--group")}
    explained, _ = case.tpsim.call("explain", {**asked, "--threads": 1})
    if not close(explained["plan"]["predicted"]["step_s"], step):
        yield "is another step in explain's search", ("plan", question), ("explain", asked)
    run = {**{name: given for name, given in asked.items() if name != "--max-oom"}, "--tokens": "1e9", "--replays": 2,
           "--assumptions": "dgx-h100"}
    answer, _ = case.tpsim.call("campaign", run)
    if not close(answer["step_s"], step):
        yield "is another step in a campaign's search", ("plan", question), ("campaign", run)


def assumed_software(case, base, options, row, value):
    """Without --stack the prediction equals that of the
    cluster's own stack, with no narrower interval."""
    cluster = case.tpsim.show("cluster", options["--cluster"])
    named = {**options, "--stack": cluster["stack"]}
    open_ = {name: given for name, given in options.items() if name != "--stack"}
    stated, assumed = (case.tpsim.simulate(one)[0]["predicted"] for one in (named, open_))
    command = ("simulate", named), ("simulate", open_)
    if not close(stated["step_s"], assumed["step_s"]):
        yield "is another step with assumed software", *command
    if assumed["step_s_high"] < stated["step_s_high"] * (1 - 1e-9):
        yield "is surer with assumed software", *command


def flops(case, base, options, row, value):
    """The row does not change the model's FLOPs of a
    step. Hardware FLOPs grow only with recompute."""
    report, before = case.tpsim.simulate(options)[0], case.tpsim.simulate(base)[0]

    def count(one, key):
        return one["predicted"][key] * one["predicted"]["step_s"] * one["gpus"] / one["global_batch"]

    if not close(count(report, "model_tflops_per_gpu"), count(before, "model_tflops_per_gpu"), 1e-6):
        yield "changes the model's FLOPs", ("simulate", base), ("simulate", options)
    if report["recompute"] == "none" and not close(count(report, "hw_tflops_per_gpu"),
                                                   count(report, "model_tflops_per_gpu"), 1e-6):
        yield "has FLOPs of recompute without recompute", ("simulate", options)


def memory(case, base, options, row, value):
    """Every stage's memory is the sum of its categories, none of them negative."""
    report, _ = case.tpsim.simulate(options)
    for stage in report["predicted"]["memory_gib"]["by_stage"]:
        parts = [amount for name, amount in stage.items() if name not in ("stage", "total")]
        if not close(sum(parts), stage["total"], 1e-6) or min(parts) < 0:
            yield "breaks the sum of a stage's memory", ("simulate", options)


def explain(case, base, options, row, value):
    """explain has the same prediction, and if a part
    changes the step, a term names the part as requested."""
    report, file = case.tpsim.simulate(options)
    explained, _ = case.tpsim.call("explain", {"--ignore-stack-limits": None}, file)
    before, _ = case.tpsim.simulate(base)
    command = saving(case, options), typed("explain", {"--ignore-stack-limits": None}, "p.json")
    if not close(explained["plan"]["predicted"]["step_s"], report["predicted"]["step_s"]):
        yield "predicts otherwise in explain", *command
    changed = [term for term in report["predicted"]["breakdown_s"]
               if not close(report["predicted"]["breakdown_s"][term], before["predicted"]["breakdown_s"][term], 1e-6)]
    named = {part["name"] for term in explained["terms"] for part in term["parts"] if part["asked_for"]}
    if row in case.catalogue.part_rows and changed and row not in named:
        yield f"changes {', '.join(changed)}, and no term names it", *command


def campaign(case, base, options, row, value):
    """A campaign uses the same step."""
    report, file = case.tpsim.simulate(options)
    asked = {"--tokens": "1e9", "--replays": 2, "--assumptions": "dgx-h100", "--ignore-stack-limits": None,
             "--allow-oom": None}
    answer, _ = case.tpsim.call("campaign", asked, file)
    if not close(answer["step_s"], report["predicted"]["step_s"]):
        yield "is another step in a campaign", saving(case, options), typed("campaign", asked, "p.json")


def compare(case, base, options, row, value):
    """compare names a row that changes step or memory, and has the same prediction. A row stated at
    the software's own value is not a difference."""
    report, file = case.tpsim.simulate(options)
    before, other = case.tpsim.simulate(base)
    if json.loads(file) == json.loads(other):
        return
    paths = case.written(other, "plan.json"), case.written(file, "plan.json")
    code, out, error = case.tpsim.command("compare", *paths, "--json", "--quiet")
    command = saving(case, base), saving(case, {**options, "--save": "q.json"}), "tpsim compare p.json q.json"
    if code not in (0, 3):
        if not any(words in error for words in ("cannot", "--ignore-stack-limits")):  # a stack's limit
            yield f"is refused by compare: {error.strip()}", *command
        return
    answer = json.loads(out)
    changed = [key for key in ("step_s", "breakdown_s", "memory_gib")
               if report["predicted"][key] != before["predicted"][key]]
    if changed and not answer["differs"]:
        yield "is a difference that compare does not name", *command
    if not close(answer["plans"][1]["predicted"]["step_s"], report["predicted"]["step_s"]):
        yield "is another step in compare", *command


def what_if(case, base, options, row, value):
    """The what-if analysis of the saved plan starts from its step."""
    report, file = case.tpsim.simulate(options)
    asked = {"--what-if": None, "--ignore-stack-limits": None}
    try:
        answer, _ = case.tpsim.call("explain", asked, file)
    except Refused as error:
        if error.kind != "does_not_fit":
            yield f"is refused by what-if: {error}", saving(case, options), typed("explain", asked, "p.json")
        return
    if not close(answer["plan"]["predicted"]["step_s"], report["predicted"]["step_s"]):
        yield "is another step in what-if", saving(case, options), typed("explain", asked, "p.json")


def written_with_loss(case, asked, file, row, command):
    """Export without --allow-loss names the row in its refusal."""
    try:
        case.tpsim.call("export", asked, file)
    except Refused as error:
        if row not in error.message:
            yield f"is lost, and the refusal does not name it: {error}", *command
        return
    yield "is lost by the files, and export writes them", *command


def launch_files(launcher):
    def reader(case, base, options, row, value):
        """Launch files keep the value, or export names it as lost or refuses it with a reason."""
        try:
            _, taken = placed(case, option_of(row), value, STACKS[launcher])
        except Skip:
            return  # the stack cannot run the value
        case.checks += 1
        report, file = case.tpsim.simulate(taken)
        try:
            asked = {"--to": launcher, "--allow-oom": None}
            export, _ = case.tpsim.call("export", {**asked, "--allow-loss": None}, file)
        except Refused as error:
            if error.is_bug or not error.hint:
                yield f"is refused by export without a reason: {error}", saving(case, taken), \
                    typed("export", {"--to": launcher}, "p.json")
            return
        command = (saving(case, taken),
                   typed("export", {"--to": launcher, "--allow-loss": None, "--allow-oom": None, "-o": "launch"},
                         "p.json"),
                   typed("import", {"--from": launcher, "--save": "q.json"}, "launch"), "tpsim compare p.json q.json")
        if "import_refuses" in export:
            return
        back = brought_back(case, export, launcher, taken)
        lost = {entry["key"] for entry in export["lost"]}
        if row in lost and max(abs(export["step_change"]), abs(export["memory_change"])) > 1e-8:
            yield from written_with_loss(case, asked, file, row, command)
        was, now = (comparable(case, one, STACKS[launcher]) for one in (file, back))
        holds = was["parts"].get(row, was.get(row)) == now["parts"].get(row, now.get(row))
        if not holds and row not in lost:
            again, _ = case.tpsim.simulate({}, back)
            if not close(again["predicted"]["step_s"], report["predicted"]["step_s"], 1e-6):
                yield "is lost by the files, and export does not name it", *command
    return reader


READERS = {"saved plan": saved_plan, "search": search, "other searches": other_searches,
           "assumed software": assumed_software, "FLOPs": flops, "memory": memory, "explain": explain,
           "campaign": campaign, "compare": compare,
           **{f"{launcher}'s files": launch_files(launcher) for launcher in LAUNCHERS}}
SLOW_READERS = {"what-if": what_if}


def read_row(case, option, value, readers):
    row = next(key for key in (*case.catalogue.settings, *case.catalogue.part_rows) if option_of(key) == option)
    if value is None:
        yield case.violation(f"{option}: the walk has no value of it", "give tests/laws/rows.py one in VALUES",
                             "tpsim show schema plan")
        return
    try:
        base, options = placed(case, option, value)
    except Skip:
        yield case.violation(f"{option} {value}: no scenario of the walk takes it",
                             "give tests/laws/rows.py one in PLACES",
                             ("simulate", {**MODEL, option: value}))
        return
    for name, reader in readers.items():
        case.checks += 1
        try:
            for text, *commands in reader(case, base, options, row, value):
                yield case.violation(f"{option} {value}, {name}: {text.split(':')[0]}", text, *commands)
        except Refused as error:
            yield case.violation(f"{option} {value}, {name}: is refused", error, saving(case, options))


@law("nothing", 6)
def rows(case):
    """Saved plans, searches, reports and launch files
    handle every value of every setting and part."""
    pairs = walk(case.catalogue)
    if case.number >= len(pairs):
        raise Skip("all are walked")
    # The first cases have one value of each row.
    order = sorted(range(len(pairs)),
                   key=lambda place: (sum(pairs[place][0] == pair[0] for pair in pairs[:place]), place))
    yield from read_row(case, *pairs[order[case.number]], READERS)


@law("nothing", 0.5)
def rows_of_what_if(case):
    """The what-if analysis handles every setting and part."""
    pairs = walk(case.catalogue)
    yield from read_row(case, *pairs[case.number * 7 % len(pairs)], SLOW_READERS)


@law("nothing", 0.02)
def options_of_rows(case):
    """Every setting and part is an option of simulate and
    plan, and every option of layout or software has a row."""
    if case.number:
        raise Skip("said once")
    rows_ = {option_of(key) for key in (*case.catalogue.settings, *case.catalogue.part_rows)} - \
        {option for option, values in VALUES.items() if values is None}
    answer, _ = case.tpsim.call("options")
    for call in ("simulate", "plan"):
        offered = {"--" + one["name"].replace("_", "-") for one in answer[call]}
        # A search chooses the stage layers, and whether they count the embedding.
        for option in sorted(rows_ - offered - ({"--stage-layers"} if call == "plan" else set())):
            yield case.violation(f"{option} has a row, and {call} has no such option", "", f"tpsim {call} --help")
    schema = case.tpsim.show("schema", "simulate-report")
    for key in sorted(set(case.catalogue.settings) - set(schema["properties"])):
        yield case.violation(f"{key} has a row, and reports have no such key", "", "tpsim show schema simulate-report")
    for option in sorted(set(case.catalogue.choices) - rows_):
        yield case.violation(f"{option} is an option of layout or software without a row", "", "tpsim show schema plan")
