#!/usr/bin/env python3
"""A program with one deliberate mistake, which a law must find.

  tests/laws/mistaken.py MISTAKE build/release/tpsim WORDS...

Answers of `tpsim call` contain the mistake; all other commands are passed to
the program. laws_test.py runs the law of each mistake against this program.
"""
import json
import os
import subprocess
import sys


def predictions(document):
    """Yields every prediction of a report."""
    if isinstance(document, dict):
        if "breakdown_s" in document:
            yield document
        for value in document.values():
            yield from predictions(value)
    elif isinstance(document, list):
        for value in document:
            yield from predictions(value)


def scaled_step(document, factor):
    """Scales the step and the quantities that follow from it."""
    for predicted in predictions(document):
        for name in ("step_s", "step_s_low", "step_s_high"):
            predicted[name] *= factor
        for name in ("tokens_per_s", "mfu", "model_tflops_per_gpu", "hw_tflops_per_gpu"):
            predicted[name] /= factor
        for name in predicted["breakdown_s"]:
            predicted["breakdown_s"][name] *= factor


def in_files(answer, change):
    """Changes the plan files of an answer."""
    for place, text in enumerate(answer["files"]):
        saved = json.loads(text)
        change(saved)
        answer["files"][place] = json.dumps(saved, indent=2) + "\n"


def is_call(*names):
    return lambda request: request["call"] in names


def states(*names):
    return lambda request: any(name in (request["options"] or {}) for name in names)


def lists(name):
    return lambda request: "," in (request["options"] or {}).get(name, "")


def every(place, factor):
    """Scales a number of all predictions; a place is its keys."""
    def change(answer):
        for predicted in predictions(answer["answer"]):
            at = predicted
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] *= factor
    return change


def of_stages(name, factor):
    def change(answer):
        for predicted in predictions(answer["answer"]):
            for stage in predicted["memory_gib"]["by_stage"]:
                stage[name] *= factor
    return change


def set_document(**values):
    return lambda answer: answer["answer"].update(values)


def without_precision(saved):
    saved["plan"].update(precision="none", fp8_param_gather=False)


def slower(answer):
    scaled_step(answer["answer"], 1.01)


def less_sure(answer):
    for predicted in predictions(answer["answer"]):
        predicted["step_s_high"] *= 1.2


def one_off_the_waterfall(answer):
    for term in answer["answer"].get("waterfall", [])[:1]:
        term["difference_s"] += 0.01


def largest_tensor_lost(answer):
    for peak in answer["answer"].get("stages", [])[:1]:
        peak["live"].pop(0)


def one_more_feasible(answer):
    answer["answer"]["search"]["feasible"] += 1


def best_plan_lost(answer):
    if len(answer["answer"]["plans"]) > 1:
        answer["answer"]["plans"].pop(0)
        answer["files"].pop(0)


def parts_not_named(answer):
    for term in answer["answer"]["terms"]:
        for part in term["parts"]:
            part["asked_for"] = False


def signs_turned(answer):
    for entry in answer["answer"].get("sensitivities", []):
        entry["change"] = -entry["change"]


def risk_turned(answer):
    for predicted in predictions(answer["answer"]):
        predicted["p_oom"] = 1 - predicted["p_oom"]


def nearest_too_low(answer):
    if "nearest valid global batch is" in answer.get("error", {}).get("hint", ""):
        answer["error"]["hint"] = "the nearest valid global batch is 1000003"


# name: (the law that finds it, condition for requests with the mistake, the wrong change)
MISTAKES = {
    "a saved plan lacks its parts": ("saved_plans", is_call("simulate"),
                                     lambda a: in_files(a, lambda p: p.pop("parts", 0))),
    "a saved plan keeps no gradient dtype": ("saved_plans", is_call("simulate"),
                                             lambda a: in_files(a, lambda p: p["plan"].update(gradient_dtype="bf16"))),
    "a saved plan keeps no network": ("saved_plans", is_call("simulate"),
                                      lambda a: in_files(a, lambda p: p.pop("network", 0))),
    "a saved plan's precision is lost": ("rows", is_call("simulate"), lambda a: in_files(a, without_precision)),
    "a cluster beside a file drops something": ("restated", lambda r: r["plan"] and states("cluster")(r), slower),
    "a listed plan is priced by another's key": ("listed_plans", is_call("plan"), slower),
    "a term is counted twice": ("sums", is_call("simulate"), every(("breakdown_s", "matmul"), 2)),
    "a category is left out of the sum": ("sums", is_call("simulate"), of_stages("weights", 0)),
    "the largest tensor is not listed": ("live_memory", is_call("explain"), largest_tensor_lost),
    "tokens of one replica are counted": ("sums", is_call("simulate"), every(("tokens_per_s",), 0.5)),
    "recompute is counted as the model's FLOPs": ("flops", is_call("simulate"),
                                                  every(("model_tflops_per_gpu",), 4 / 3)),
    "the optimizer is not sharded": ("zero_memory", is_call("simulate"), of_stages("optimizer", 8)),
    "a bias is not counted": ("parameters", is_call("simulate"),
                              lambda a: a["answer"].update(parameters=a["answer"]["parameters"] - 1)),
    "export names nothing as lost": ("exported", is_call("export"), set_document(lost=[])),
    "import reads no micro-batch": ("exported", is_call("import_plan"),
                                    lambda a: in_files(a, lambda p: p["plan"].update(zero=0))),
    "the risk is that of fitting": ("memory_risk", is_call("simulate"), risk_turned),
    "a machine in a file is slower": ("entries_as_files", lambda r: "/" in (r["options"] or {}).get("cluster", ""),
                                      slower),
    "a unit is read as another": ("units", lambda r: "/" in (r["options"] or {}).get("profile", ""), slower),
    "a dispatcher costs time without experts": ("idle",
                                                states("dispatcher", "shard_group", "pipeline_sends", "cp_comm_type"),
                                                slower),
    "a default stated is another value": ("spellings", states("rank_order"), slower),
    "stated software is less sure": ("stated", states("stack"), less_sure),
    "threads change the answer": ("certificate", lambda r: (r["options"] or {}).get("threads") == "2", slower),
    "a certificate counts one plan twice": ("certificate", is_call("plan"), one_more_feasible),
    "the best plan is not listed": ("sizes_agree", is_call("plan"), best_plan_lost),
    "a longer list is searched worse": ("more_freedom", lambda r: r["call"] == "plan"
                                        and (lists("zero")(r) or not states("zero")(r)), slower),
    "explain names no part": ("rows", is_call("explain"), parts_not_named),
    "explain predicts by other parts": ("reports_agree", is_call("explain"), slower),
    "a campaign runs another step": ("reports_agree", is_call("campaign"), set_document(step_s=1)),
    "a waterfall leaves out a term": ("why_not", is_call("explain"), one_off_the_waterfall),
    "a sensitivity has the wrong sign": ("what_if", is_call("explain"), signs_turned),
    "the nearest value is not the nearest": ("hints", is_call("simulate"), nearest_too_low),
}


def answers(mistake, program):
    _, applies, change = MISTAKES[mistake]
    with subprocess.Popen([*program, "call"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        for line in sys.stdin:
            child.stdin.write(line)
            child.stdin.flush()
            answer = json.loads(child.stdout.readline())
            if applies(json.loads(line)) and ("answer" in answer or change is nearest_too_low):
                change(answer)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    mistake_, program_, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    if words == ["call"]:
        answers(mistake_, [program_])
    else:
        os.execv(program_, [program_, *words])
