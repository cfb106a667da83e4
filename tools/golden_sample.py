#!/usr/bin/env python3
"""Compares a build with the golden sample: random predictions and searches, recorded in
tests/sample.

  tools/golden_sample.py check  --program build/release/tpsim [--count 100] [--exact | --tolerance 1e-9]
  tools/golden_sample.py record --program build/release/tpsim    # prints what changed, then writes it
  tools/golden_sample.py draw   --program build/release/tpsim    # draws new scenarios; then record
  tools/golden_sample.py show p0817                              # a scenario's command and numbers

Exit code 0: all numbers are as recorded. 1: a number differs, or the program cannot run. 2: invalid
arguments. CONTRIBUTING.md explains the output.
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

from sample import changes, drawing, recording, scenarios  # noqa: E402
from sample.names import Names  # noqa: E402
from sample.program import CannotRun, Program  # noqa: E402


def families_of(program):
    return {entry["name"]: entry["family"] for entry in program.listed("models")}


def progress(total):
    def hear(done):
        if sys.stderr.isatty():
            print(f"\r{done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    return hear


def run(options, names):
    """Compares the recording with the program. Returns the comparison and its text."""
    program = Program(options.program, ROOT)
    drawn = scenarios.first_of(scenarios.read_scenarios(options.folder / "scenarios.txt", names), options.count)
    now = recording.measured(program, drawn, names, progress(len(drawn)))
    before = recording.read_recording(options.folder)
    compared = changes.Comparison(names, before, now, options.tolerance)
    return compared, changes.Report(compared, drawn, families_of(program)).text()


def check(options):
    compared, text = run(options, Names(options.folder / "ids.json", grows=False))
    print(text)
    return 1 if compared.changes or compared.fresh else 0


def record(options):
    names = Names(options.folder / "ids.json", grows=True)
    compared, text = run(options, names)
    print(text)
    recording.write_recording(options.folder, compared.new)
    names.save()
    return 0


def draw(options):
    names = Names(options.folder / "ids.json", grows=True)
    program = Program(options.program, ROOT)
    drawn, catalogue = drawing.drawn_scenarios(program, options.predictions, options.searches, options.seed)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "scenarios.txt").write_text("".join(one.line(names) + "\n" for one in drawn))
    names.save()
    print(drawing.coverage_text(drawn, catalogue))
    return 0


def show(options):
    names = Names(options.folder / "ids.json", grows=False)
    drawn = {one.id: one for one in scenarios.read_scenarios(options.folder / "scenarios.txt", names)}
    before = recording.read_recording(options.folder)
    for one in options.ids:
        if one not in drawn:
            print(f"{one}: no such scenario; there are {', '.join(list(drawn)[:3])}, ...", file=sys.stderr)
            return 2
        compared = changes.Comparison(names, before, before, 0)
        command = "explain --program" if one.startswith(scenarios.PREDICTION) else "plan --threads 1 --top 3"
        print(f"{one}  tpsim {command} {' '.join(drawn[one].words())}")
        for key, value in before.numbers[one].items():
            print(f"    {compared.name_of(key):<40} {value}")
    return 0


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "record", "draw", "show"):
        command = commands.add_parser(name)
        command.add_argument("--folder", type=pathlib.Path, default=ROOT / "tests" / "sample")
        command.set_defaults(run=globals()[name], tolerance=0.0, count=None)
        if name != "show":
            command.add_argument("--program", required=True, help="a build of tpsim, with an emulator before it")
        if name == "check":
            command.add_argument("--count", type=int, help="the first predictions alone, and a twentieth as many searches")
            how = command.add_mutually_exclusive_group()
            how.add_argument("--exact", dest="tolerance", action="store_const", const=0.0, help="bit for bit [default]")
            how.add_argument("--tolerance", type=float, help="relative difference that is let pass")
        if name == "draw":
            command.add_argument("--predictions", type=int, default=2000)
            command.add_argument("--searches", type=int, default=200)
            command.add_argument("--seed", type=int, default=1)
        if name == "show":
            command.add_argument("ids", nargs="+", metavar="ID")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parsed()
    try:
        sys.exit(arguments.run(arguments))
    except CannotRun as error:
        sys.exit(f"tools/golden_sample.py: {error}")
