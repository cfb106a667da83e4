"""Calls the program under test by its command line."""
import concurrent.futures
import json
import os
import shlex
import subprocess

LONGEST_S = 600


class CannotRun(Exception):
    """The program is missing, or this machine cannot run it."""


class Answer:
    """The result of one call. `report` is None if the call did not print a JSON document."""

    def __init__(self, code, report, message):
        self.code, self.report, self.message = code, report, message


class Program:
    """The program. `command` may have several words, such as "qemu-aarch64 build/arm/tpsim"."""

    def __init__(self, command, root):
        self.words, self.root = shlex.split(command), root

    def call(self, *words):
        """Runs the program. Returns (exit code, standard output, standard error)."""
        try:
            done = subprocess.run([*self.words, *words], cwd=self.root, capture_output=True, text=True,
                                  timeout=LONGEST_S, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            return -1, "", f"no answer in {LONGEST_S} s"
        except OSError as error:
            raise CannotRun(f"--program {' '.join(self.words)}: {error.strerror}") from error
        return done.returncode, done.stdout, done.stderr

    def answer(self, *words):
        code, out, error = self.call(*words, "--json", "--quiet")
        try:
            report = json.loads(out) if out else None
        except json.JSONDecodeError as error_at:
            return Answer(-1, None, f"standard output is not JSON: {error_at}")
        lines = error.strip().splitlines()
        return Answer(code, report, lines[0] if lines else "")

    def predict(self, scenario):
        return self.answer("explain", "--program", *scenario.words())

    def search(self, scenario):
        return self.answer("plan", "--threads", "1", "--top", "3", *scenario.words())

    def listed(self, kind):
        code, out, error = self.call("list", kind, "--json")
        if code != 0:
            raise CannotRun(f"--program {' '.join(self.words)}: list {kind} fails: {error.strip()}")
        return json.loads(out)["entries"]


def in_parallel(function, items):
    """Yields the results in the order of the items. Runs one call per processor at a time."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(function, items)
