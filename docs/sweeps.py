#!/usr/bin/env python3
"""Sweeps over many scenarios with tpsim: requests, a worker function for any executor, and a runner (docs/sweeps.md).

Usage: docs/sweeps.py requests N [plan] > requests.jsonl     draws N requests of simulate (or of plan)
       docs/sweeps.py ray requests.jsonl answers.jsonl       answers the requests on Ray
       docs/sweeps.py local requests.jsonl answers.jsonl     answers the requests with concurrent.futures
Run again after a stop, ray and local answer the requests that are left.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

CHUNK = 50  # requests that a worker answers with one process of tpsim
MODELS = ["bloom-560m", "gpt-1.7b", "llama-3.2-1b", "llama-2-7b", "llama-3-8b", "qwen3-8b", "llama-3-70b",
          "mixtral-8x7b"]
CLUSTERS = ["dgx-a100", "dgx-h100", "dgx-b200", "mi300x-8"]


def drawn_request(draw, number, call):
    """Returns one random request; some of them are refused or do not fit."""
    options = {"model": draw.choice(MODELS), "cluster": draw.choice(CLUSTERS), "seq": draw.choice([2048, 4096, 8192])}
    if call == "plan":
        options |= {"gpus": draw.choice([8, 16, 32]), "threads": 1}
    else:
        pipeline = draw.choice([1, 1, 2, 4])
        options |= {"tp": draw.choice([1, 2, 4, 8]), "pp": pipeline, "dp": draw.choice([1, 2, 4, 8]),
                    "micro_batch": draw.choice([1, 2, 4]), "global_batch": draw.choice([64, 128]),
                    "zero": draw.choice([0, 1] if pipeline > 1 else [0, 1, 2, 3]),
                    "recompute": draw.choice(["none", "selective", "full"]), "allow_oom": True}
        if "mixtral" in options["model"] and options["tp"] > 1:
            options["sequence_parallel"] = True
    return {"format": "tpsim-request/1", "call": call, "id": number, "options": options}


def answer_chunk(lines):
    """Returns the short answer of each request line, in order. It is a plain function, for any executor."""
    requests = [json.loads(line) for line in lines]
    ids = [request.pop("id") for request in requests]  # call takes requests without an id
    run = subprocess.run([os.environ.get("TPSIM", "tpsim"), "call"], input="\n".join(map(json.dumps, requests)) + "\n",
                         capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return [{"id": number} | {key: answer[key] for key in ("brief", "error") if key in answer}
            for number, answer in zip(ids, answers, strict=True)]


def chunks_left(requests, output):
    """Returns chunks of the request lines without an answer in the file, and cuts off a line that was not finished."""
    text = output.read_text() if output.exists() else ""
    text = text[:text.rfind("\n") + 1]
    output.write_text(text)
    done = {json.loads(line)["id"] for line in text.splitlines()}
    left = [line for line in requests.read_text().splitlines() if json.loads(line)["id"] not in done]
    return [left[first:first + CHUNK] for first in range(0, len(left), CHUNK)]


def answers_of_ray(chunks):
    """Yields the answers of each chunk, in the order in which Ray finishes them."""
    import ray
    program = os.environ.get("TPSIM", "tpsim")
    ray.init(address=os.environ.get("RAY_ADDRESS"), runtime_env={"env_vars": {"TPSIM": program}})
    remote = ray.remote(max_retries=-1)(answer_chunk)  # a chunk whose worker dies is answered again
    waiting = [remote.remote(chunk) for chunk in chunks]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield ray.get(done[0])


def answers_of_threads(chunks):
    """Yields the answers of each chunk, in the order in which threads finish them. Each waits for its own tpsim."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
        for done in concurrent.futures.as_completed([executor.submit(answer_chunk, chunk) for chunk in chunks]):
            yield done.result()


def main():
    command, *rest = sys.argv[1:]
    if command == "requests":
        draw = random.Random(72)
        for number in range(int(rest[0])):
            print(json.dumps(drawn_request(draw, number, rest[1] if len(rest) > 1 else "simulate")))
        return
    requests, output = map(pathlib.Path, rest)
    answers_of = {"ray": answers_of_ray, "local": answers_of_threads}[command]
    chunks = chunks_left(requests, output)
    with output.open("a") as file:
        for number, answers in enumerate(answers_of(chunks), 1):
            file.write("".join(json.dumps(answer) + "\n" for answer in answers))
            file.flush()
            print(f"{number} of {len(chunks)} chunks", file=sys.stderr)


if __name__ == "__main__":
    main()
