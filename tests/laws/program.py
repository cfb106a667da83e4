"""The program under test: `tpsim call` (docs/json.md), and single commands."""
import copy
import json
import shlex
import subprocess
import threading

from sample.program import CannotRun, Program

LONGEST_S = 600
PROGRAM_FAILS = ("bug", "terminated")


class Refused(Exception):
    """An error of the program; `message`, `hint` and `kind` are those of docs/json.md."""

    def __init__(self, error):
        super().__init__(error["text"])
        self.kind, self.message, self.hint = error["kind"], error["message"], error["hint"]
        self.is_bug = self.kind in PROGRAM_FAILS


class Answers:
    """A child process of one thread, started at its first request."""

    def __init__(self, words, root):
        self.words, self.root, self.child = words, root, None

    def _start(self):
        try:
            self.child = subprocess.Popen([*self.words, "call"], cwd=self.root, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError as error:
            raise CannotRun(f"--program {' '.join(self.words)}: {error.strerror}") from error

    def exchange(self, request):
        if self.child is None or self.child.poll() is not None:
            self._start()
        late = threading.Timer(LONGEST_S, self.child.kill)
        late.start()
        try:
            self.child.stdin.write(json.dumps(request) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if not line:
            ended = self.child.wait()
            text = f"the program ended with exit status {ended} or gave no answer in {LONGEST_S} s"
            return {"error": {"kind": "terminated", "text": text, "message": text, "hint": ""}}
        return json.loads(line)

    def end(self):
        if self.child is not None:
            self.child.stdin.close()
            self.child.wait()


def call_options(options):
    """Converts options of a command line to those of docs/json.md."""
    return {name[2:].replace("-", "_"): True if value is None else str(value) for name, value in options.items()}


def words_of(options):
    words = []
    for name, value in options.items():
        words += [name] if value is None else [name, str(value)]
    return words


class Tpsim:
    """Cached answers of the program. forget() clears the cache."""

    def __init__(self, command, root):
        self.program = Program(command, root)
        self._threads, self._children, self._shown = threading.local(), [], {}

    def _answers(self):
        if not hasattr(self._threads, "child"):
            self._threads.child = Answers(self.program.words, self.program.root)
            self._threads.kept = {}
            self._children.append(self._threads.child)
        return self._threads.child

    def forget(self):
        self._answers()
        self._threads.kept.clear()

    def call(self, name, options=None, plan=None, path=None):
        """Returns (document, texts of plan files). Raises Refused."""
        request = {"format": "tpsim-request/1", "call": name, "options": call_options(options or {}), "plan": plan,
                   "path": path}
        child, key = self._answers(), json.dumps(request)
        answer = self._threads.kept.get(key)
        if answer is None:
            answer = self._threads.kept[key] = child.exchange(request)
        if "error" in answer:
            raise Refused(answer["error"])
        return copy.deepcopy(answer["answer"]), answer["files"]

    def simulate(self, options, plan=None):
        """Returns (report, text of the plan file), also if the plan does not fit."""
        report, files = self.call("simulate", {**options, "--allow-oom": None}, plan)
        return report, files[0]

    def plan(self, options, file=None):
        """Returns (report, texts of the plans' files)."""
        return self.call("plan", {"--threads": 1, **options}, file)

    def command(self, *words):
        """Returns (exit code, standard output, standard error) of one command."""
        return self.program.call(*map(str, words))

    def show(self, kind, name):
        """Returns a catalogue entry as a value."""
        if (kind, name) not in self._shown:
            code, out, error = self.command("show", kind, name)
            if code != 0:
                raise CannotRun(f"show {kind} {name} fails: {error.strip()}")
            self._shown[kind, name] = json.loads(out)
        return copy.deepcopy(self._shown[kind, name])

    def end(self):
        for child in self._children:
            child.end()


def typed(name, options=None, *more):
    """Returns a command as a user types it."""
    return shlex.join(["tpsim", name, *map(str, more), *words_of(options or {})])
