"""The spreads of software without calibration rows that tools/interval_spreads.py takes from errors."""
import math
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
sys.dont_write_bytecode = True

import interval_spreads  # noqa: E402


class Row:
    def __init__(self, error, applies=(True, False), own=0.03):
        self.error, self.applies, self.own = error, list(applies), own ** 2


def sources_of(spread, applies, count, rows=12, seed=3):
    draw = random.Random(f"{seed} {spread} {count}")
    return {f"{applies} {i}": [Row(draw.gauss(0, spread), applies) for _ in range(rows)] for i in range(count)}


class Spreads(unittest.TestCase):
    def test_each_unknown_has_the_spread_of_its_own_rows(self):
        sources = sources_of(0.08, (True, False), 12) | sources_of(0.4, (True, True), 12)
        described, other = interval_spreads.spreads_of(sources)
        self.assertTrue(0.05 < described < 0.12, described)
        self.assertTrue(0.25 < other < 0.6, other)

    def test_without_a_source_that_errs_as_the_others_intervals_are_wider(self):
        errors = [(0.2, -0.15), (-0.2, 0.15)] * 4
        sources = {str(i): [Row(error) for error in pair] for i, pair in enumerate(errors)}
        widths = []
        while len(sources) > 2:
            widths.append(interval_spreads.spreads_of(sources)[0])
            sources.popitem()
        self.assertEqual(widths, sorted(widths))

    def test_a_source_counts_once_however_many_rows_it_has(self):
        few = {"a": [Row(0.3)], "b": [Row(0.05)], "c": [Row(-0.1)]}
        many = few | {"b": [Row(0.05)] * 50}
        for one, other in zip(interval_spreads.spreads_of(few), interval_spreads.spreads_of(many)):
            self.assertTrue(math.isclose(one, other, rel_tol=1e-6))

    def test_memory_of_every_source_but_one_is_as_wide_as_their_errors(self):
        memory = {str(i): [0.2, -0.2] for i in range(6)}
        self.assertTrue(0.15 < interval_spreads.memory_spread(memory) < 0.35)


if __name__ == "__main__":
    unittest.main()
