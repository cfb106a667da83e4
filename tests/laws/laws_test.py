#!/usr/bin/env python3
"""Each deliberate mistake of mistaken.py is found by its law.

  tests/laws/laws_test.py build/release/tpsim
  tests/laws/laws_test.py build/release/tpsim a bias is not counted
"""
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from mistaken import MISTAKES  # noqa: E402

CASES = 24


def finds(mistake, law, program):
    """Returns whether the law prints a violation of the mistaken program."""
    command = shlex.join([sys.executable, str(HERE / "mistaken.py"), mistake, program])
    done = subprocess.run([sys.executable, str(HERE / "run.py"), "--program", command, "--law", law, "--cases",
                           str(CASES),
                           "--seed", "3", "--first"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(done.stdout, done.stderr)
    return done.returncode == 1


def main():
    program, words = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    missed = 0
    for mistake, (law, _, _) in MISTAKES.items():
        if not words or mistake == " ".join(words):
            found = finds(mistake, law, program)
            missed += not found
            print(f"{'found' if found else 'MISSED'}: {mistake} ({law})", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
