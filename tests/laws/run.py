#!/usr/bin/env python3
"""Laws: two computations of the same result must
agree, for random scenarios over the whole catalogue.

  tests/laws/run.py --program build/release/tpsim --cases 20 --seed 7
  tests/laws/run.py --program build/release/tpsim --law restated --law exported --cases 500
  tests/laws/run.py --program build/release/tpsim --list

Prints cases and violations of each law, and the smallest
example of each kind of violation as commands to type.
Exit code 0: no violation; 1: violations; 2: bad arguments; 4: the program cannot run.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "laws")]
sys.dont_write_bytecode = True

import base  # noqa: E402
from program import CannotRun, Tpsim  # noqa: E402
from sample.drawing import Catalogue  # noqa: E402

FAMILIES = ("files", "launches", "machines", "sums", "words", "intervals", "searches", "shapes", "questions", "refusals",
            "rows")


class LawCatalogue(Catalogue):
    """The sample's catalogue, with the rows of settings and parts from the program's schemas."""

    def __init__(self, tpsim):
        super().__init__(tpsim.program)
        rows = tpsim.show("schema", "plan")["properties"]
        self.settings, self.part_rows = rows["plan"]["properties"], rows["parts"]["properties"]
        self.parts = [base.option_of(key) for key in self.part_rows]
        self.files = {kind: sorted(getattr(self, f"{kind}s")) for kind in ("model", "cluster", "stack")}
        self.files["profile"] = sorted(entry["name"] for entry in tpsim.program.listed("profiles"))


class Tally:
    """Counts of a law's cases and violations."""

    def __init__(self):
        self.cases = self.checks = self.skipped = 0
        self.seconds = 0.0
        self.kinds = {}
        self.counts = collections.Counter()


class Run:
    def __init__(self, arguments, tpsim, folder):
        self.tpsim, self.folder, self.seed = tpsim, folder, arguments.seed
        self.ends = time.monotonic() + arguments.seconds if arguments.seconds else float("inf")
        self.ends_with_first = arguments.first
        self.catalogue = LawCatalogue(tpsim)
        self.lock, self.tallies = threading.Lock(), {}

    def one(self, item):
        """Runs a case of a law, unless the time is over."""
        law, number = item
        start = time.monotonic()
        if start > self.ends:
            return
        found, checks, skipped = [], 0, False
        self.tpsim.forget()
        try:
            case = base.drawn_case(law, self.tpsim, self.catalogue, self.folder, self.seed, number)
            found = list(base.violations(law, case))
            checks = case.checks
        except base.Skip:
            skipped = True
        except (KeyError, TypeError, ValueError) as error:  # an answer that the law cannot read
            found = [base.Violation(f"unreadable answer: {error!r}", traceback.format_exc())]
        tally = self.tallies[law.name]
        for violation in found:
            with self.lock:
                tally.counts[violation.kind] += 1
                is_first = violation.kind not in tally.kinds
                tally.kinds.setdefault(violation.kind, violation)
            if self.ends_with_first:
                self.ends = 0
            elif is_first and violation.commands:
                tally.kinds[violation.kind] = base.shrunk(law, case, violation)
        with self.lock:
            tally.cases += not skipped
            tally.checks += checks
            tally.skipped += skipped
            tally.seconds += time.monotonic() - start

    def run(self, laws, cases):
        self.tallies = {law.name: Tally() for law in laws}
        # Cases of all laws alternate, so that an early end covers every law.
        items = [(number / law.weight, place, law, number) for place, law in enumerate(laws)
                 for number in range(max(1, round(cases * law.weight)))]
        items = [(law, number) for _, _, law, number in sorted(items, key=lambda item: item[:2])]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(self.one, items):
                pass


def report(law, tally):
    """Prints a law's line and its violations."""
    print(f"{law.name}: {tally.cases} cases, {sum(tally.counts.values())} violations, {tally.checks} checks, "
          f"{tally.skipped} skipped, {tally.seconds:.1f} s")
    for kind, violation in sorted(tally.kinds.items(), key=lambda pair: -tally.counts[pair[0]]):
        print(f"  {tally.counts[kind]} x {kind}")
        print(f"      {violation.text}")
        for command in violation.commands:
            print(f"      $ {command}")
    sys.stdout.flush()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="a build of tpsim")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other scenarios [1]")
    parser.add_argument("--cases", type=int, default=20, help="cases of a law of weight 1 [20]")
    parser.add_argument("--seconds", type=float, help="begin no case after this time")
    parser.add_argument("--law", action="append", help="this law, or all of a file [all]")
    parser.add_argument("--without", action="append", default=[], help="not this law, or none of a file")
    parser.add_argument("--first", action="store_true", help="end with the first violation, as it was drawn")
    parser.add_argument("--list", action="store_true", help="name the laws")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.program:
        parser.error("--program is missing: name a build of tpsim")
    return arguments


def chosen(names, without):
    laws = []
    for family in FAMILIES:
        first = len(base.LAWS)
        __import__(family)
        laws += [law for law in base.LAWS[first:] if (not names or {law.name, family} & set(names))
                 and not {law.name, family} & set(without)]
    return laws


def main():
    arguments = parsed()
    laws = chosen(arguments.law, arguments.without)
    if not laws:
        print(f"no such law; there are {', '.join(law.name for law in base.LAWS)}", file=sys.stderr)
        return 2
    if arguments.list:
        for law in laws:
            print(f"{law.name}: {law.says}")
        return 0
    with tempfile.TemporaryDirectory(prefix="tpsim-laws-") as folder:
        tpsim = Tpsim(arguments.program, ROOT)
        run = Run(arguments, tpsim, folder)
        try:
            run.run(laws, arguments.cases)
        finally:
            tpsim.end()
    for law in laws:
        report(law, run.tallies[law.name])
    violated = sum(sum(tally.counts.values()) for tally in run.tallies.values())
    print(f"seed {arguments.seed}: {sum(t.cases for t in run.tallies.values())} cases of {len(laws)} laws, "
          f"{sum(t.checks for t in run.tallies.values())} checks, {violated} violations")
    return 1 if violated else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotRun as error:
        print(f"tests/laws/run.py: {error}", file=sys.stderr)
        sys.exit(4)
