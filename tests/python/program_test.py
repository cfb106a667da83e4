"""The child processes of import tpsim: which program is found, and how a child ends.

Run by ctest with PYTHONPATH and TPSIM_PROGRAM set.
"""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import tpsim
from tpsim import _program

PROGRAM = os.path.realpath(os.environ["TPSIM_PROGRAM"])
PACKAGE = os.path.dirname(tpsim.__file__)
SMALL = {"model": "bloom-560m", "tp": 2, "pp": 2, "dp": 4, "micro_batch": 2, "global_batch": 64}


def children():
    """Returns the pids of programs that this Python process started, from any thread."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # a thread that ended
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as ids:
                found |= {int(one) for one in ids.read().split()}
    return found


def python(text, environment=None, **options):
    """Runs a script in a new Python process, by default with the current environment."""
    return subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(text)], env=environment,
                          capture_output=True, text=True, timeout=120, **options)


def script(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        environment = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(environment)))

    def path(self, *parts):
        path = os.path.join(self.folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path


class WhichProgram(Folder):
    def environment(self, **changed):
        kept = {key: value for key, value in os.environ.items()
                if key not in ("TPSIM_PROGRAM", "PYTHONPATH") and not key.startswith("TPSIM_")}
        return {**kept, "PATH": "/usr/bin:/bin", **changed}

    def package_in(self, *parts):
        site = self.path(*parts, "")
        shutil.copytree(PACKAGE, os.path.join(site, "tpsim"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        return site

    def program_in(self, *parts):
        path = self.path(*parts)
        os.symlink(PROGRAM, path)
        return path

    def found(self, site, **changed):
        done = python("from tpsim import _program; print(_program.find_program())",
                      self.environment(PYTHONPATH=site, **changed), cwd="/")
        self.assertEqual(done.stderr, "")
        return done.stdout.strip()

    def test_the_named_one_comes_first(self):
        site = self.package_in("lib", "python3.8", "site-packages")
        self.program_in("bin", "tpsim")
        named = self.program_in("named")
        self.assertEqual(self.found(site, TPSIM_PROGRAM=named), named)

    def test_a_named_one_that_is_none_is_an_error(self):
        os.environ["TPSIM_PROGRAM"] = self.path("nowhere")
        with self.assertRaisesRegex(tpsim.Error, "TPSIM_PROGRAM: .*nowhere") as caught:
            tpsim.models()
        self.assertEqual((caught.exception.kind, caught.exception.exit_code), ("missing", 4))

    def test_the_one_that_the_installer_recorded(self):
        site = self.package_in("lib", "site-packages")
        recorded = self.program_in("elsewhere", "bin", "tpsim")
        self.program_in("bin", "tpsim")
        for name, text in (("METADATA", "Metadata-Version: 2.1\nName: tpsim\nVersion: 1\n"),
                           ("RECORD", "tpsim/__init__.py,,\n../../elsewhere/bin/tpsim,,\n")):
            with open(self.path("lib", "site-packages", "tpsim-1.dist-info", name), "w",
                      encoding="utf-8") as out:
                out.write(text)
        self.assertEqual(self.found(site), recorded)

    def test_the_one_of_an_installation(self):
        for parts in (("lib", "python3.8", "site-packages"), ("target",)):
            site = self.package_in(*parts)
            where = () if parts[0] == "lib" else parts
            wanted = self.program_in(*where, "bin", "tpsim")
            self.assertEqual(self.found(site), wanted)

    def test_the_one_of_the_build_tree(self):
        site = self.package_in("build", "python")
        wanted = self.program_in("build", "tpsim")
        self.assertEqual(self.found(site), wanted)

    def test_the_one_on_the_path_comes_last(self):
        site = self.package_in("a", "b", "c", "d", "e", "f")
        other = self.program_in("path", "tpsim")
        self.assertEqual(self.found(site, PATH=f"/usr/bin:{os.path.dirname(other)}"), other)
        done = python("import tpsim; tpsim.models()", self.environment(PYTHONPATH=site), cwd="/")
        self.assertIn("tpsim._errors.Error: tpsim: the program tpsim was not found", done.stderr)

    def test_another_version_is_refused_by_name(self):
        answer = '{"format": "tpsim-answer/1", "answer": "9.9.9", "files": []}'
        other = script(self.path("tpsim"), f"while read -r line; do echo '{answer}'; done\n")
        os.environ["TPSIM_PROGRAM"] = other
        with self.assertRaises(tpsim.Error) as caught:
            tpsim.models()
        text = str(caught.exception)
        for part in (other, "9.9.9", PACKAGE, tpsim.__version__):
            self.assertIn(part, text)
        self.assertEqual(children(), set())

    def test_what_is_no_tpsim_is_refused_with_what_it_said(self):
        os.environ["TPSIM_PROGRAM"] = script(self.path("tpsim"), "echo 'unknown command' >&2; exit 2\n")
        with self.assertRaisesRegex(tpsim.Error, "unknown command"):
            tpsim.models()
        os.environ["TPSIM_PROGRAM"] = self.path("garbage")
        with open(self.path("garbage"), "wb") as out:
            out.write(b"\x7fELF garbage")
        os.chmod(self.path("garbage"), stat.S_IRWXU)
        with self.assertRaisesRegex(tpsim.Error, "cannot be started"):
            tpsim.models()


class Children(Folder):
    def setUp(self):
        super().setUp()
        _program._pool.end()  # ends children of other tests
        self.addCleanup(_program._pool.end)

    def test_an_import_starts_nothing(self):
        done = python("""
            import os, tpsim
            print(tpsim.__version__, "subprocess" in dir(tpsim))
            print(open(f"/proc/self/task/{os.getpid()}/children").read().split())
        """)
        self.assertEqual((done.stdout.splitlines()[1:], done.stderr), (["[]"], ""))

    def test_one_child_answers_call_after_call(self):
        tpsim.models()
        first = children()
        tpsim.simulate(**SMALL)
        with self.assertRaises(tpsim.Error):
            tpsim.simulate(model="nonsense")
        tpsim.clusters()
        self.assertEqual((len(first), children()), (1, first))

    def test_threads_call_at_once(self):
        meet = threading.Barrier(3, timeout=60)
        seen = []

        def work():
            meet.wait()
            tpsim.plan("bloom-176b", gpus=384)
            seen.append(len(children()))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreater(max(seen), 1)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            wanted = tpsim.simulate(**SMALL)
            for got in pool.map(lambda _: tpsim.simulate(**SMALL), range(60)):
                self.assertEqual(got, wanted)
        self.assertLessEqual(len(children()), _program._MOST_IDLE)

    def test_an_idle_child_that_is_killed_is_replaced(self):
        wanted = tpsim.models()
        (first,) = children()
        os.kill(first, signal.SIGKILL)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        self.assertEqual(tpsim.models(), wanted)
        self.assertNotEqual(children(), {first})

    def test_a_child_that_dies_at_work_is_an_error(self):
        enough = threading.Event()

        def kill_again_and_again():
            while not enough.wait(0.2):
                for child in children():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)

        killer = threading.Thread(target=kill_again_and_again)
        killer.start()
        with self.assertRaisesRegex(tpsim.Error, "signal 9.*memory") as caught:
            while True:  # a long search, so that the kill comes during a call
                tpsim.plan("deepseek-v3", gpus=2048, cluster="dgx-h100")
        enough.set()
        killer.join()
        self.assertEqual((caught.exception.kind, caught.exception.exit_code), ("terminated", 137))
        self.assertIn(PROGRAM, str(caught.exception))
        self.assertIn("bloom-176b", tpsim.models())

    def test_what_a_dying_child_said_is_in_the_error(self):
        version = f'{{"format": "tpsim-answer/1", "answer": "{tpsim.__version__}", "files": []}}'
        os.environ["TPSIM_PROGRAM"] = script(self.path("tpsim"), f"""
            read -r line; echo '{version}'
            read -r line; yes 'much to say' | head -c 300000 >&2; echo 'last words' >&2; exit 7""")
        with self.assertRaisesRegex(tpsim.Error, "(?s)exit status 7: .*last words$") as caught:
            tpsim.models()
        self.assertLess(len(str(caught.exception)), 5_000)

    def test_ctrl_c_ends_the_call_and_its_child(self):
        done = subprocess.Popen([sys.executable, "-B", "-c", textwrap.dedent("""
            import os, signal, sys, tpsim
            signal.signal(signal.SIGINT, signal.default_int_handler)
            tpsim.models()
            children = f"/proc/self/task/{os.getpid()}/children"
            first = open(children).read().split()
            print("ready", flush=True)
            try:
                while True:
                    tpsim.plan("deepseek-v3", gpus=2048, cluster="dgx-h100")
            except KeyboardInterrupt:
                left = open(children).read().split()
                print("interrupted", left == [], len(tpsim.models()) > 0,
                      open(children).read().split() != first, flush=True)
        """)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.assertEqual(done.stdout.readline(), "ready\n")
        time.sleep(0.3)
        os.killpg(done.pid, signal.SIGINT)  # sent to the whole group, like Ctrl-C in a terminal
        out, err = done.communicate(timeout=60)
        self.assertEqual((out, err), ("interrupted True True True\n", ""))

    def test_relative_paths_and_the_environment_are_the_callers(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        for name, batch in (("one", 64), ("two", 128)):
            folder = os.path.dirname(self.path(name, ""))
            tpsim.simulate(**{**SMALL, "global_batch": batch}).plan.save(self.path(name, "plan.json"))
            os.chdir(folder)
            self.assertEqual(tpsim.load_plan("plan.json").global_batch, batch)
        shutil.rmtree(self.path("two", ""))  # folder "one" takes its place
        os.chdir(self.folder)
        os.rename("one", "two")
        os.chdir("two")
        self.assertEqual(tpsim.load_plan("plan.json").global_batch, 64)
        os.environ["TPSIM_DATA"] = self.path("nowhere")
        with self.assertRaisesRegex(tpsim.Error, "nowhere"):
            tpsim.plan("bloom-560m", gpus=8)
        del os.environ["TPSIM_DATA"]
        tpsim.plan("bloom-560m", gpus=8)

    def test_standard_input_is_not_the_requests(self):
        plan = tpsim.simulate(**SMALL).plan
        for path in ("-", "/dev/stdin"):
            with self.assertRaises(tpsim.Error):
                tpsim.check_log(path, plan=plan)
        self.assertEqual(tpsim.simulate(plan).plan, plan)

    def test_children_end_with_python_and_say_nothing(self):
        done = python("""
            import os, threading, time, tpsim, warnings
            warnings.simplefilter("ignore")  # of Python 3.12: to fork beside threads is what is tested
            tpsim.models()
            threading.Thread(target=tpsim.plan, args=["deepseek-v3"], daemon=True,
                             kwargs={"gpus": 2048, "cluster": "dgx-h100"}).start()
            while len(open(f"/proc/self/task/{os.getpid()}/children").read().split()) < 1:
                time.sleep(0.01)
            pid = os.fork()
            if pid == 0:
                tpsim.models()
                os._exit(0)
            os.waitpid(pid, 0)
            print(*{child for task in os.listdir("/proc/self/task")
                    for child in open(f"/proc/self/task/{task}/children").read().split()})
        """)
        self.assertEqual(done.stderr, "")
        for child in done.stdout.split():
            self.assertFalse(os.path.exists(f"/proc/{child}"), child)

    def test_a_fork_leaves_the_children_to_their_parent(self):
        tpsim.models()
        (mine,) = children()
        pid = os.fork()
        if pid == 0:
            right = len(tpsim.simulate(**SMALL).plan.stage_layers) == 2
            _program._pool.end()
            os._exit(0 if right else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        tpsim.clusters()
        self.assertEqual(children(), {mine})


if __name__ == "__main__":
    unittest.main()
