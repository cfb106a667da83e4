"""Output of print() and in notebooks: every answer has tables, as text and as plain HTML with escaped texts.

Run by ctest with PYTHONPATH, TPSIM_PROGRAM and TPSIM_SOURCE_DIR set.
"""

import dataclasses
import html.parser
import os
import tempfile
import unittest
from unittest import mock

import tpsim
from tpsim import _reports, _tables, _values

SMALL = {"model": "bloom-560m", "tp": 2, "pp": 2, "dp": 4, "micro_batch": 2, "global_batch": 64}
HOSTILE = "\x1b[31m<script src=//x>\"'&</td></table>"
RUNS = os.path.join(os.environ["TPSIM_SOURCE_DIR"], "data", "published_runs", "megatron_selene.csv")


class Page(html.parser.HTMLParser):
    """Checks HTML: only these elements, closed in order, with at most a style attribute."""

    ELEMENTS = ("div", "table", "thead", "tbody", "tr", "th", "td")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.rows, self.title = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in self.ELEMENTS, tag
        assert [key for key, _ in attrs] in ([], ["style"]), attrs
        assert "url" not in str(attrs) and "color" not in str(attrs), attrs
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open[-1:] == ["div"]:
            self.title += data
        else:
            self.rows[-1][-1] += data


def hostile(value):
    """Returns the same answer with every text replaced."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, (tuple, list)):
        return type(value)(hostile(one) for one in value)
    if isinstance(value, dict):
        return {HOSTILE: hostile(one) for one in value.values()}
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{
            one.name: hostile(getattr(value, one.name)) for one in dataclasses.fields(value)})
    return value


def small_answers():
    """Returns a calibration and a training run of the small model of the golden tests."""
    files = os.path.join(os.environ["TPSIM_SOURCE_DIR"], "tests", "cli", "files")
    with mock.patch.dict(os.environ, {"TPSIM_DATA": os.path.join(files, "data")}):
        measured = os.path.join(files, "measured.csv")
        calibrated = tpsim.calibrate(measured, cluster="four-nodes")
    model = os.path.join(files, "data", "models", "tiny.json")
    return [calibrated, tpsim.run(model=model, seq=16, steps=2, micro_batch=1, global_batch=1)]


def answers():
    """Returns at least one answer of every kind that has a table."""
    plan = tpsim.simulate(**SMALL).plan
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "training.log")
        with open(log, "w", encoding="utf-8") as out:
            out.write("iteration 3/ 10 | elapsed time per iteration (ms): 900000.0 | lm loss: 3.1 |\n" * 9)
        checked = tpsim.check_log(log, plan=plan)
    return [
        plan, dataclasses.replace(plan, predicted=None), checked,
        tpsim.plan("bloom-560m", gpus=16, global_batch=64, top=30, group="none"),
        tpsim.simulate(plan), tpsim.explain(plan), tpsim.explain(plan, program=True),
        tpsim.explain(plan, memory=True),
        tpsim.explain(plan, why_not="tp=4"), tpsim.explain(plan, why_not="micro-batch=3"),
        tpsim.explain(plan, what_if=True), tpsim.campaign(plan, tokens=3e9),
        tpsim.campaign(model="bloom-560m", tokens=3e9, gpus=[8, 16], deadline="400d"),
        tpsim.validate(RUNS), tpsim.scaling("bloom-560m", gpus=[8, 16], global_batch=64),
        tpsim.compare([plan, tpsim.simulate(plan, micro_batch=1).plan]),
        *small_answers()]


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = answers()

    def test_every_kind_of_answer_has_a_table(self):
        kinds = {type(one) for one in self.answers}
        self.assertEqual(kinds, set(_values.TABLES))
        reports = {kind for kind in vars(_reports).values()
                   if isinstance(kind, type) and issubclass(kind, _reports.Report)}
        abstract = {_reports.Report, _reports.ScenarioReport}
        self.assertEqual(reports - abstract, kinds - {tpsim.Plan})

    def test_tables_are_plain_and_rectangular(self):
        for answer in self.answers:
            page = Page(answer._repr_html_())
            self.assertTrue(page.title)
            self.assertGreater(len(page.rows), 0, type(answer))
            self.assertTrue(all(any(row) for row in page.rows), type(answer))

    def test_texts_are_escaped(self):
        for answer in self.answers:
            text = hostile(answer)._repr_html_()
            self.assertNotIn("<script", text)
            Page(text)

    def test_print_shows_the_rows_of_the_tables(self):
        for answer in self.answers:
            text = str(answer)
            self.assertLess(len(text), 10_000, type(answer))
            self.assertLess(max(map(len, text.splitlines())), 400)
            titles = [table.title for table in _values._tables_of(answer)]
            self.assertEqual(text.split("\n")[0], titles[0])
            rows = sum(len(table.rows) + bool(table.head) + 1 for table in _values._tables_of(answer))
            self.assertEqual(len(text.splitlines()), rows + len(titles) - 1)
            self.assertNotIn("\x1b", str(hostile(answer)))

    def test_a_search_shows_its_plans(self):
        report = next(one for one in self.answers if isinstance(one, tpsim.PlanReport))
        head, *rows = Page(report._repr_html_()).rows
        self.assertEqual(head, ["layout", "step, 90 % interval", "tokens/s", "MFU", "memory", "fits"])
        self.assertEqual(len(report.plans), 30)
        self.assertEqual((len(rows), rows[-1][0]), (_tables._MOST_ROWS + 1, "10 more"))
        best = report.best
        self.assertIn(f"tp {best.tp}, pp {best.pp}, dp {best.dp}, ZeRO {best.zero}", rows[0][0])
        self.assertEqual(rows[0][2], f"{best.predicted.tokens_per_s:,.0f}")
        self.assertEqual(rows[0][5][:4], "yes,")

    def test_times_have_units(self):
        for value, text in [(0, "0 us"), (1.5e-5, "15 us"), (0.0123, "12.3 ms"), (9.87, "9.87 s"),
                            (119, "119 s"), (150, "2.5 min"), (-9000, "-2.5 h")]:
            self.assertEqual(_tables._seconds(value), text)
        self.assertEqual(_tables._step(100, 90, 130), "100 s, 90 to 130 s")


if __name__ == "__main__":
    unittest.main()
