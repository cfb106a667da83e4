"""Random wrong, huge and hostile arguments for every function of the package.

Every call quickly returns an answer, or raises tpsim.Error or TypeError, but never
an error of kind bug. Eight threads and forked processes get the same answers as
one caller. Run by ctest with PYTHONPATH set; TPSIM_ATTACKS is the number of calls.
"""

import concurrent.futures
import contextlib
import faulthandler
import inspect
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

import tpsim
from tpsim import _program

CALLS = int(os.environ.get("TPSIM_ATTACKS", "1200"))
SECONDS_A_CALL = 60

FUNCTIONS = {
    "plan": tpsim.plan,
    "simulate": tpsim.simulate,
    "explain": tpsim.explain,
    "campaign": tpsim.campaign,
    "export": tpsim.export,
    "import_plan": tpsim.import_plan,
    "load_plan": tpsim.load_plan,
    "check_log": tpsim.check_log,
    "validate": tpsim.validate,
}

# Valid calls. Most attacks change one argument of such a call.
LAYOUT = {"model": "bloom-560m", "tp": 2, "pp": 2, "dp": 4, "micro_batch": 2, "global_batch": 64}
RIGHT = {
    "plan": {"model": "bloom-560m", "gpus": 8, "global_batch": 64},
    "simulate": LAYOUT,
    "explain": LAYOUT,
    "campaign": {**LAYOUT, "tokens": 1e9},
    "export": {"plan": "plan.json", "to": "megatron-lm"},
    "import_plan": {"launch": "launch", "from_": "megatron-lm", "model": "bloom-560m"},
    "load_plan": {"path": "plan.json"},
    "check_log": {"log": "train.log", "plan": "plan.json"},
    "validate": {"runs": "runs.csv"},
}


class OwnError(Exception):
    """Raised by an argument, not by the package; must reach the caller unchanged."""


class Thrower(os.PathLike):
    def __fspath__(self):
        raise OwnError

    def __str__(self):
        raise OwnError


class Liar(os.PathLike):
    def __fspath__(self):
        return 7


def without_end():
    while True:
        yield 1


def drawn(rng):
    """Returns a random value of any type."""
    return rng.choice([
        lambda: None,
        lambda: rng.choice([True, False]),
        lambda: rng.choice([0, -1, 1, 7, 2**31, 2**63, 2**64, -2**63, 10**400]),
        lambda: rng.choice([0.0, -0.0, 1e-320, 1.5, 1e308, float("inf"), float("nan")]),
        lambda: rng.choice(["", " ", "\0", "on", "off", "1", "1-", "-1", "2,4", "1e9", "1T", "nan", "72GiB",
                            "\ud800", "\U0001f600" * 9, "../..", "/dev/null", "/dev/full", ".", "none",
                            "all", "%s%n", "$(id)", "--help", "a" * 100_000]),
        lambda: "".join(chr(rng.randrange(1, 0x2000)) for _ in range(rng.randrange(30))),
        lambda: rng.choice([b"", b"plan.json", b"\xff\0", bytearray(3), memoryview(b"x")]),
        lambda: [drawn(rng) for _ in range(rng.randrange(4))],
        lambda: {drawn_key(rng): drawn(rng) for _ in range(2)},
        lambda: rng.choice([object(), object, len, 1j, Thrower(), Liar(), range(3), {1, 2}, ...]),
        lambda: rng.choice([tpsim, tpsim.Plan, tpsim.Error]),
    ])()


def drawn_key(rng):
    return rng.choice(["tp", "model", "", "x", 3, None])


def keywords_of(name):
    return [one for one in inspect.signature(FUNCTIONS[name]).parameters if one != "options"]


def attack(seed):
    """Returns the function and keywords of a seed."""
    rng = random.Random(seed)
    name = rng.choice(sorted(FUNCTIONS))
    given = dict(RIGHT[name])
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        key = rng.choice(keywords_of(name) + ["nonsense"] * (rng.random() < 0.1))
        given[key] = drawn(rng)
    if rng.random() < 0.1:
        given.pop(rng.choice(sorted(given)))
    return name, given


def answer(seed):
    """Returns the outcome of a call as text."""
    name, given = attack(seed)
    try:
        got = FUNCTIONS[name](**given)
    except tpsim.Error as error:
        assert error.kind != "bug", f"seed {seed}: {name}({given}): {error}"
        assert str(error).strip(), f"seed {seed}: {name}({given}): an error without a text"
        return f"{error.kind}: {error}"
    except (TypeError, OwnError) as error:
        return type(error).__name__
    return type(got).__name__


@contextlib.contextmanager
def bounded():
    """Ends the process with a traceback if a call takes too long."""
    faulthandler.dump_traceback_later(SECONDS_A_CALL, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.before = os.getcwd()
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        report = tpsim.simulate(**LAYOUT)
        report.plan.save("plan.json")
        os.mkdir("launch")
        for file, text in tpsim.export(report.plan, to="megatron-deepspeed").items():
            with open(os.path.join("launch", file), "w", encoding="utf-8") as out:
                out.write(text)
        with open("train.log", "w", encoding="utf-8") as log:
            log.write("iteration 3/ 10 | elapsed time per iteration (ms): 900.0 | lm loss: 3.1 |\n" * 4)
        with open("runs.csv", "w", encoding="utf-8") as runs:
            runs.write("model,cluster,tp,pp,dp,micro_batch,global_batch,measured_step_s\n"
                       "bloom-560m,jean-zay-a100,2,2,4,2,64,1.5\n")

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        shutil.rmtree(cls.folder)

    def test_the_right_calls_are_right(self):
        for name in ("plan", "simulate", "explain", "campaign", "load_plan"):
            FUNCTIONS[name](**RIGHT[name])

    def test_wrong_values_are_errors_with_a_text(self):
        kinds = {}
        for seed in range(CALLS):
            with bounded():
                kind = answer(seed).split(":")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
        # Random values must reach the commands, and not only the type checks.
        self.assertGreater(kinds.get("bad_input", 0), CALLS // 10, kinds)
        self.assertGreater(sum(kinds.values()) - kinds.get("bad_input", 0), CALLS // 10, kinds)

    def test_a_value_without_end_is_refused(self):
        with bounded(), self.assertRaises((TypeError, tpsim.Error)):
            tpsim.plan("bloom-560m", gpus=8, global_batch=64, tp=without_end())

    def test_a_list_that_holds_itself_is_refused(self):
        endless = []
        endless.append(endless)
        with bounded(), self.assertRaises((TypeError, tpsim.Error)):
            tpsim.plan("bloom-560m", gpus=8, global_batch=64, tp=endless)

    def test_threads_get_what_one_caller_gets(self):
        seeds = range(CALLS, CALLS + 64)
        alone = [answer(seed) for seed in seeds]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(answer, seeds)), alone)

    def test_a_forked_process_gets_what_its_parent_gets(self):
        wanted = tpsim.simulate(**LAYOUT).to_dict()
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                os._exit(0 if tpsim.simulate(**LAYOUT).to_dict() == wanted else 1)
            children.append(child)
        for child in children:
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_program_answers_every_line(self):
        """A line that is not a request gets an error, and the next request is answered."""
        rng = random.Random(1)
        right = json.dumps({"format": "tpsim-request/1", "call": "version"}).encode()
        lines = [b"", b"{", b"null", b"[]", b"7", b"\xff", b"\0", right[:-1], b"[" * 100_000, right * 2]
        for key, value in [("call", 7), ("call", "plna"), ("format", "tpsim-request/2"), ("what", 1),
                           ("options", []), ("options", {"tp": {}}), ("options", {"tp": 1}), ("options", {"nonsense": ""}),
                           ("plan", {}), ("plan", 1), ("path", "x"), ("path", {})]:
            lines.append(json.dumps({**json.loads(right), key: value}).encode())
        for _ in range(200):
            cut = bytearray(right)
            for _ in range(rng.randrange(1, 4)):
                cut[rng.randrange(len(cut))] = rng.choice([*range(10), *range(11, 256)])
            lines.append(bytes(cut))
        sent = b"".join(line + b"\n" + right + b"\n" for line in lines)
        done = subprocess.run([_program.find_program(), "call"], input=sent, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), 2 * len(lines))
        for line, wrong, good in zip(lines, answers[::2], answers[1::2]):
            self.assertEqual(good["answer"], tpsim.__version__)
            if wrong.get("answer") != tpsim.__version__:
                self.assertEqual(wrong["error"]["kind"], "bad_input", line)
                self.assertTrue(wrong["error"]["text"])

    def test_calls_without_what_they_need_are_errors(self):
        rng = random.Random(2)
        for name in ("plan", "simulate", "explain", "campaign", "export", "import_plan", "check_log",
                     "validate", "read_plan", "models", "nonsense"):
            for _ in range(20):
                given = {key: rng.choice(["", "x", "plan.json", "-", "/dev/stdin", "{}"])
                         for key in ("plan", "path") if rng.random() < 0.5}
                with bounded(), contextlib.suppress(tpsim.Error):
                    _program.call(name, **given)


if __name__ == "__main__":
    unittest.main()
