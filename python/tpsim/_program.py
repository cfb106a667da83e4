"""Runs the program tpsim as child processes that answer calls: `tpsim call` (docs/json.md).

A child answers one call at a time. Each call takes an idle child or starts a new one, so that
threads can call concurrently. After a fork, the new Python process starts its own children. All
children end when Python ends.
"""

import atexit
import json
import os
import select
import subprocess
import threading
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Set, Tuple, Union

from tpsim._errors import Error
from tpsim._options import VERSION

_MOST_IDLE = 8  # maximum number of idle children that are kept
_MOST_STDERR = 4096  # bytes at the end of stderr that an error quotes
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


class Answer(NamedTuple):
    """An answer: the command's --json document, and the texts of its plan files."""

    document: Any
    files: List[str]


def call(
    name: str, options: Optional[Mapping[str, Any]] = None, plan: Optional[str] = None,
    path: Union[str, List[str], None] = None, report: Optional[Mapping[str, Any]] = None,
) -> Answer:
    """Returns the program's answer to a call as in docs/json.md. Raises Error if the program
    reports one.
    """
    answer = json.loads(_pool.call(_request(name, options, plan, path, report)))
    if "error" in answer:
        raise _error_of(answer["error"])
    return Answer(answer["answer"], answer["files"])


def run_command(words: List[str]) -> Any:
    """Runs a command in a process of its own and returns its --json document. Raises Error if the
    command ends without a report.
    """
    call("version")  # raises Error if the program differs from the package
    done = subprocess.run([_known_program(), *words, "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        said = done.stderr[-_MOST_STDERR:].decode("utf-8", "replace").strip()
        _fail_ended(_known_program(), done.returncode % 256, said)
    if document["version"].startswith("tpsim-error-report/"):
        raise _error_of(document)
    return document


def _error_of(error: Mapping[str, Any]) -> Error:
    return Error(error["text"], error["kind"], error["exit_code"], error["message"],
                 error["where"], error["hint"])


def _request(
    name: str, options: Optional[Mapping[str, Any]] = None, plan: Optional[str] = None,
    path: Union[str, List[str], None] = None, report: Optional[Mapping[str, Any]] = None,
) -> bytes:
    request = {"format": "tpsim-request/1", "call": name, "options": options, "plan": plan,
               "path": path, "report": report}
    # The program reports text that is not UTF-8 as an error, like the command line does.
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _fail(kind: str, exit_code: int, message: str, where: str, hint: str = "") -> NoReturn:
    text = f"{where}: {message}" + (f" ({hint})" if hint else "")
    raise Error(text, kind, exit_code, message, where, hint)


def _installed_with_package() -> Iterator[str]:
    """Yields paths of the program that the installer of the Python package recorded."""
    from importlib import metadata  # imported here: it is slow and needed once

    for distribution in metadata.distributions(name="tpsim", path=[os.path.dirname(_PACKAGE)]):
        for file in distribution.files or []:
            if file.name == "tpsim" and file.parent.name in ("bin", "Scripts"):
                yield os.path.abspath(str(distribution.locate_file(file)))


def _around_package() -> Iterator[str]:
    """Yields possible paths of the program: in the build tree, and in bin/ of the parent folders,
    as after an installation or pip --target.
    """
    folder = os.path.dirname(_PACKAGE)
    yield os.path.join(os.path.dirname(folder), "tpsim")
    for _ in range(4):
        yield os.path.join(folder, "bin", "tpsim")
        folder = os.path.dirname(folder)


def _on_path() -> Iterator[str]:
    for folder in os.get_exec_path():
        yield os.path.join(folder, "tpsim")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_program() -> str:
    """Returns the path of the program. Searches $TPSIM_PROGRAM, the files installed with the
    package, the build tree and PATH, in this order. Raises Error of kind "missing" if the program
    is not found.
    """
    named = os.environ.get("TPSIM_PROGRAM")
    if named:
        if not _is_program(named):
            _fail("missing", 4, f"'{named}' is not an executable file", "TPSIM_PROGRAM",
                  "name the program tpsim, or unset TPSIM_PROGRAM")
        return os.path.abspath(named)
    for places in (_installed_with_package, _around_package, _on_path):
        for path in places():
            if _is_program(path):
                return path
    _fail("missing", 4, "the program tpsim was not found", "tpsim",
          "install the wheel, put tpsim on PATH, or name it in TPSIM_PROGRAM")


class _Child:
    """A child process of the program."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.ends_with_python = False
        self._said = b""
        # A separate session, so that Ctrl-C reaches only Python, which then ends the call.
        self._process = subprocess.Popen(
            [program, "call"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def exchange(self, line: bytes) -> bytes:
        """Sends a request and returns the answer. Raises BrokenPipeError if the process ended
        before it read the request, and EOFError if it ended before it answered.
        """
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._in, rest):]
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        poll.register(self._err, select.POLLIN)
        pieces: List[bytes] = []
        while not pieces or not pieces[-1].endswith(b"\n"):  # an answer is one line
            for descriptor, _ in poll.poll():
                piece = os.read(descriptor, 1 << 20)
                if descriptor == self._out:
                    if not piece:
                        raise EOFError
                    pieces.append(piece)
                elif piece:
                    self._hear(piece)
                else:
                    poll.unregister(descriptor)
        return b"".join(pieces)

    def how_it_ended(self) -> Tuple[int, str]:
        """Returns the exit code of the ended process, as a shell reports it, and the end of its
        stderr.
        """
        status = self._process.wait()
        os.set_blocking(self._err, False)  # a grandchild may keep the pipe open
        piece = os.read(self._err, _MOST_STDERR)
        while piece:
            self._hear(piece)
            try:
                piece = os.read(self._err, _MOST_STDERR)
            except BlockingIOError:
                break
        self.close()
        return (128 - status if status < 0 else status, self._said.decode("utf-8", "replace").strip())

    def stop(self) -> None:
        """Kills the process. If a thread waits for its answer, the thread gets EOFError."""
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        self.stop()
        self.close()

    def end(self) -> None:
        """Ends an idle process by closing its input."""
        self.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()

    def disown(self) -> None:
        """Closes the pipes without ending the process. Called after a fork: the process belongs to
        the parent.
        """
        self.close()
        self._process.returncode = 0

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()

    def _hear(self, piece: bytes) -> None:
        self._said = (self._said + piece)[-_MOST_STDERR:]


# Program, working directory and environment of a child. A call reuses a child only if the caller
# has the same, because relative paths and TPSIM_DATA depend on them.
_Surroundings = Tuple[str, Optional[Tuple[int, int]], Dict[str, str]]


class _Pool:
    """The child processes of this Python process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: List[Tuple[_Surroundings, _Child]] = []
        self._all: Set[_Child] = set()

    def call(self, line: bytes) -> bytes:
        """Returns the answer to a request."""
        surroundings = _surroundings()
        while True:
            child = self._taken(surroundings)
            is_new = child is None
            if child is None:
                child = self._started(surroundings[0])
            try:
                answer = child.exchange(line)
            except BrokenPipeError:
                self._all.discard(child)
                ended = child.how_it_ended()
                if is_new:
                    _fail_ended(child.program, *ended)
                continue  # the idle child has ended: use another one
            except EOFError:
                self._all.discard(child)
                if child.ends_with_python:
                    raise SystemExit from None  # ends this thread without a message
                _fail_ended(child.program, *child.how_it_ended())
            except BaseException:  # such as Ctrl-C: stop the work and drop its answer
                self._all.discard(child)
                child.kill()
                raise
            self._put_back(surroundings, child)
            return answer

    def _taken(self, surroundings: _Surroundings) -> Optional[_Child]:
        """Returns an idle child that was started with these surroundings; None if there is none.
        Ends idle children with other surroundings.
        """
        while True:
            with self._lock:
                if not self._idle:
                    return None
                started_with, child = self._idle.pop()
            if started_with == surroundings and child.is_alive():
                return child
            self._all.discard(child)
            child.end()

    def _put_back(self, surroundings: _Surroundings, child: _Child) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((surroundings, child))
                return
        self._all.discard(child)
        child.end()

    def _started(self, program: str) -> _Child:
        """Starts a child. Raises Error if the version of the program differs from the package's."""
        try:
            child = _Child(program)
        except OSError as error:
            _fail("missing", 4, f"cannot be started: {error.strerror}", program)
        try:
            version = json.loads(child.exchange(_request("version")))["answer"]
        except (BrokenPipeError, EOFError):
            exit_code, said = child.how_it_ended()
            if exit_code > 128:
                _fail_ended(program, exit_code, said)
            version = f"unknown: {said}"
        except BaseException:
            child.kill()
            raise
        if version != VERSION:
            child.end()
            _fail("missing", 4, f"the program has version {version}, but the Python package in "
                  f"{_PACKAGE} has version {VERSION}", program,
                  "install both in the same version, or set TPSIM_PROGRAM to a program of the "
                  "package's version")
        self._all.add(child)
        return child

    def end(self) -> None:
        """Ends all children when Python exits. Busy children belong to daemon threads."""
        with self._lock:
            idle, self._idle = [child for _, child in self._idle], []
        for child in self._all.copy():
            child.ends_with_python = True
            if child in idle:
                child.end()
            else:
                child.stop()
        self._all.clear()

    def disown(self) -> None:
        for child in self._all:
            child.disown()


def _fail_ended(program: str, exit_code: int, said: str) -> NoReturn:
    signal = f" (signal {exit_code - 128})" if exit_code > 128 else ""
    kinds = {130: "interrupted", 137: "terminated", 143: "terminated"}
    _fail(kinds.get(exit_code, "bug"), exit_code,
          f"the program ended with exit status {exit_code}{signal}" + (f": {said}" if said else ""),
          program, "perhaps memory ran out" if exit_code == 137 else "")


def _surroundings() -> _Surroundings:
    try:
        here = os.stat(".")
        folder = (here.st_dev, here.st_ino)
    except OSError:
        folder = None
    return (_known_program(), folder, dict(os.environ))


_known: Dict[Tuple[Optional[str], Optional[str]], str] = {}


def _known_program() -> str:
    """Returns the path from find_program(). The path is cached until TPSIM_PROGRAM or PATH changes
    or the file is gone.
    """
    key = (os.environ.get("TPSIM_PROGRAM"), os.environ.get("PATH"))
    if key not in _known or not _is_program(_known[key]):
        _known[key] = find_program()
    return _known[key]


_pool = _Pool()


def _begin_as_fork() -> None:
    global _pool
    _pool.disown()
    _pool = _Pool()


def _end() -> None:
    _pool.end()


os.register_at_fork(after_in_child=_begin_as_fork)
atexit.register(_end)
