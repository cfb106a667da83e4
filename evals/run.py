#!/usr/bin/env python3
"""Asks tpsim the questions of questions.jsonl through `tpsim mcp`, and prints how many answers are right.

Usage: evals/run.py [--program tpsim] [--json FILE] [ID...]

Exit code 1 if an answer is wrong without a warning: outside its tolerance, and the truth outside the 90 % interval.
"""
import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
UNSURE = (0.05, 0.95)  # a risk of running out of memory between these is a warning


class Client:
    """A client of the Model Context Protocol that calls one tool at a time."""

    def __init__(self, program):
        self.server = subprocess.Popen([program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last = 0
        self.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}})

    def ask(self, method, parameters):
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters}
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())["result"]

    def tool(self, name, arguments):
        """Returns (whether the answer is an error, the structured answer)."""
        arguments = {key: value.replace("{root}", str(HERE.parent)) if isinstance(value, str) else value
                     for key, value in arguments.items()}
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        return result["isError"], result["structuredContent"]


def at(document, path):
    """Returns the value at a path such as "best.step_s", the sum for a list of paths, or None if a value is missing."""
    if isinstance(path, list):
        values = [at(document, one) for one in path]
        return None if None in values else sum(values)
    for key in path.split("."):
        if isinstance(document, list) and int(key) < len(document):
            document = document[int(key)]
        elif isinstance(document, dict) and key in document:
            document = document[key]
        else:
            return None
    return document


def interval(document, path):
    """Returns the 90 % interval beside the value at the path, or None."""
    ends = [at(document, f"{path}_{end}") for end in ("low", "high")] if isinstance(path, str) else [None]
    return None if None in ends else ends


def interval_of_ratio(ratio, parts):
    """Returns the 90 % interval of a ratio of two values with independent errors, or None if a part has no interval."""
    if any(ends is None for _, ends in parts):
        return None
    (first, (first_low, first_high)), (second, (second_low, second_high)) = parts
    down = math.hypot(math.log(first / first_low), math.log(second_high / second))
    up = math.hypot(math.log(first_high / first), math.log(second / second_low))
    return [ratio * math.exp(-down), ratio * math.exp(up)]


def judged_number(question, answers):
    """Returns (verdict, text of the answer) of a question whose answer is a number or a ratio of two."""
    values = [at(answer, call["path"]) for call, answer in zip(question["calls"], answers)]
    if None in values:
        return "refused", "the answer has no such value"
    value = values[0] / values[1] if question["answer"] == "ratio" else values[-1]
    truth, ends = question["truth"], interval(answers[-1], question["calls"][-1]["path"])
    if question["answer"] == "between":
        low, high = truth
        inside = (low is None or value >= low) and (high is None or value <= high)
        return ("right" if inside else "wrong"), f"{value:.4g}"
    if question["answer"] == "interval":
        return ("right" if ends and ends[0] <= truth <= ends[1] else "wrong"), f"{ends[0]:.4g} to {ends[1]:.4g}"
    if abs(value - truth) <= question["within"] * abs(truth):
        return "right", f"{value:.4g}"
    if question["answer"] == "ratio":
        ends = interval_of_ratio(value, [(one, interval(answer, call["path"])) for one, call, answer
                                         in zip(values, question["calls"], answers)])
    return ("warned" if ends and ends[0] <= truth <= ends[1] else "wrong"), f"{value:.4g}"


def judged_fit(question, is_error, answer):
    """Returns (verdict, text of the answer) of a question whose answer is yes or no."""
    risk = at(answer, "best.p_oom")
    if is_error and answer["kind"] != "does_not_fit":
        return "refused", answer["message"]
    fits = "no" if is_error or risk > 0.5 else "yes"
    if fits == question["truth"]:
        return "right", fits
    return ("warned" if risk is not None and UNSURE[0] < risk < UNSURE[1] else "wrong"), fits


def judged(question, replies):
    """Returns (verdict, text of the answer); the verdict is right, warned, wrong or refused."""
    is_error, answer = replies[-1]
    if question["answer"] == "fits":
        return judged_fit(question, is_error, answer)
    if question["answer"] == "error":
        text = answer["text"] if is_error else "no error"
        return ("right" if question["truth"] in text else "wrong"), text
    refusals = [one["message"] for failed, one in replies if failed]
    if refusals:
        return "refused", refusals[0]
    if question["answer"] == "first_key":
        text = next(iter(at(answer, question["calls"][-1]["path"])))
        return ("right" if text == question["truth"] else "wrong"), text
    return judged_number(question, [one for _, one in replies])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="tpsim", help="the program [tpsim]")
    parser.add_argument("--json", type=pathlib.Path, help="also writes verdicts as JSON lines")
    parser.add_argument("ids", nargs="*", help="ask only these questions")
    options = parser.parse_args()
    questions = [json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    client = Client(options.program)
    count, rows = collections.Counter(), []
    for question in questions:
        if options.ids and question["id"] not in options.ids:
            continue
        verdict, text = judged(question, [client.tool(one["tool"], one["arguments"]) for one in question["calls"]])
        count[verdict] += 1
        rows.append({"id": question["id"], "verdict": verdict, "answer": text, "truth": question["truth"]})
        print(f"{verdict:8} {question['id']:26} truth {str(question['truth'])[:30]:30} answer {text[:100]}", flush=True)
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} questions: {count['right']} right, {count['warned']} wrong with a warning, "
          f"{count['wrong']} wrong, {count['refused']} refused")
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
