"""tools/golden_sample.py with a fake program, whose names and numbers a test can change."""
import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import golden_sample  # noqa: E402
from sample.program import Answer  # noqa: E402


class StandIn:
    """A fake program with two models. `renamed` maps recorded
    names to current ones, `factor` scales steps with fp8."""

    def __init__(self):
        self.renamed, self.factor, self.width, self.best_tp = {}, 1.0, 4, None

    def now(self, name):
        return self.renamed.get(name, name)

    def listed(self, kind):
        assert kind == "models"
        return [{"name": self.now("small"), "family": "llama"}, {"name": "large", "family": "mixtral"}]

    def options(self, scenario):
        """Returns the options with recorded names; None if the scenario uses a removed name."""
        old = {new: name for name, new in self.renamed.items()}
        words = [str(word) for pair in scenario.options.items() for word in pair]
        if any(word in self.renamed for word in words):
            return None
        return {old.get(name, name): old.get(str(value), str(value)) for name, value in scenario.options.items()}

    def plan(self, options):
        tp = self.best_tp or int(options.get("--tp", 1))
        step = (2.0 if options["--model"] == "small" else 9.0) / tp
        if options.get("--precision") == "fp8":
            step *= self.factor
        memory = {"stage": 0, self.now("weights"): 1.5, "context": 0.5, "total": 2.0}
        predicted = {"step_s": step, "step_s_low": step / 2, "step_s_high": step * 2, "hw_tflops_per_gpu": 1.0,
                     "model_tflops_per_gpu": 1.0, "mfu": 0.25, "tokens_per_s": 1 / step, "bubble_fraction": 0.0,
                     "p_oom": 0.0, "breakdown_s": {self.now("matmul"): step, "idle": 0.0}, "sources": {"model": 1.0},
                     "memory_gib": {"capacity": 80.0, "peak": 2.0, "host_of_node": 0.0, "by_stage": [memory, memory]}}
        return {"tp": tp, self.now("precision"): self.now(options.get("--precision", "none")),
                "sequence_parallel": False, "stage_layers": [4, 4], "predicted": predicted}

    def answer(self, scenario, more):
        options = self.options(scenario)
        if options is None:
            return Answer(2, None, "error: unknown")
        head = {"parameters": 7, "active_parameters": 7, "gpus": 8}
        return Answer(0, {**head, **more(self.plan(options))}, "")

    def predict(self, scenario):
        events = [{"memory": "allocate", "tensor": 1, "category": self.now("weights"), "bytes": 64, "label": ""},
                  {"op": self.now("product"), "dtype": "bf16", "dims": [1, 2, 3, self.width], "variant": 0,
                   "kernels": 1, "flops": 12.0, "bytes": 3.5, "label": "mlp.up"},
                  {"collective": "all_reduce", "group": "tensor", "ranks": 2, "bytes": 8, "label": "mlp.down"}]
        programs = [{"part": "block", "count": 2, "block": 0, "recomputed": False,
                     "phases": [{"phase": "forward", "events": events}]}]
        return self.answer(scenario, lambda plan: {"plan": plan, "programs": programs})

    def search(self, scenario):
        search = {"considered": 5, "feasible": 2, "simulated": 1, "pruned": {"too big": 3}}
        return self.answer(scenario, lambda plan: {"plans": [plan], "search": search})


SCENARIOS = ("p0001 o1=m1 o2=2\np0002 o1=m2 o3=o3v1\np0003 o1=m1 o3=o3v1 o2=4\n"
             "q001 o1=m1 o2=2\n")
IDS = {"option": {"o1": "--model", "o2": "--tp", "o3": "--precision"}, "model": {"m1": "small", "m2": "large"},
       "values of o3": {"o3v1": "fp8"}}


class Sample(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.program = StandIn()
        golden_sample.Program = lambda command, root: self.program
        (self.folder / "scenarios.txt").write_text(SCENARIOS)
        (self.folder / "ids.json").write_text(json.dumps(IDS))
        self.assertEqual(self.tool("record")[0], 0)

    def tool(self, command, **given):
        """Returns the exit code and the output."""
        options = argparse.Namespace(folder=self.folder, program="", count=None, tolerance=0.0)
        vars(options).update(given)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = getattr(golden_sample, command)(options)
        return code, printed.getvalue()

    def texts(self):
        return {path.name: path.read_text() for path in self.folder.glob("*.txt")}

    def test_as_recorded(self):
        code, text = self.tool("check")
        self.assertEqual((code, text), (0, "0 of 3 predictions changed\n0 of 1 search changed\n"))

    def test_what_was_never_recorded_is_told(self):
        with open(self.folder / "scenarios.txt", "a", encoding="utf-8") as scenarios:
            scenarios.write("p0004 o1=m1 o2=8\n")
        code, text = self.tool("check")
        self.assertEqual(code, 1)
        self.assertIn("1 of 4 predictions not recorded before", text)

    def test_a_rename_changes_the_id_map_alone(self):
        renamed = {"matmul": "products", "weights": "parameters", "small": "tiny", "--precision": "--recipe",
                   "precision": "recipe", "fp8": "e4m3", "product": "gemm"}
        before = self.texts()
        self.program.renamed = renamed
        code, text = self.tool("check")
        self.assertEqual(code, 1)
        self.assertIn("exit code 2, was 0: error: unknown", text)
        ids = (self.folder / "ids.json").read_text()
        for old, new in renamed.items():
            ids = ids.replace(f'"{old}"', f'"{new}"')
        (self.folder / "ids.json").write_text(ids)
        self.assertEqual(self.tool("check")[0], 0)
        self.assertEqual(self.tool("record")[0], 0)
        self.assertEqual(self.texts(), before)
        self.assertEqual((self.folder / "ids.json").read_text(), ids)

    def test_an_unknown_name_is_told(self):
        self.program.renamed = {"matmul": "products"}
        code, text = self.tool("check")
        self.assertEqual(code, 1)
        self.assertIn("ids.json has no term 'products'", text)

    def test_the_smallest_change_fails_exactly_and_passes_a_tolerance(self):
        self.program.factor = 1 + 1e-12
        self.assertEqual(self.tool("check")[0], 1)
        self.assertEqual(self.tool("check", tolerance=1e-9)[0], 0)
        self.assertEqual(self.tool("check", tolerance=1e-13)[0], 1)

    def test_a_change_is_told_by_number_family_and_what_is_shared(self):
        self.program.factor = 1.02
        code, text = self.tool("check")
        self.assertEqual(code, 1)
        for line in ("2 of 3 predictions changed", "term matmul", "median +2.0 %", "1 of 2", "mixtral",
                     "all of these have --precision fp8, as do 0 of the 1 others",
                     "p0002  tpsim explain --model large --precision fp8"):
            self.assertIn(line, text)
        self.assertIn("0 of 1 search changed", text)
        self.assertEqual(self.tool("record")[0], 0)
        self.assertEqual(self.tool("check")[0], 0)

    def test_another_program_is_shown_line_by_line(self):
        self.program.width = 5
        code, text = self.tool("check", tolerance=1e-9)
        self.assertEqual(code, 1)
        self.assertIn("program of p0001: 2 lines of 5 differ", text)
        self.assertIn("- product bf16 1x2x3x4", text)
        self.assertIn("+ product bf16 1x2x3x5", text)

    def test_another_best_plan_is_told_by_its_settings(self):
        self.program.best_tp = 8
        code, text = self.tool("check")
        self.assertEqual(code, 1)
        self.assertIn("1 of 1 search changed", text)
        self.assertIn("q001: best plan with --tp 8 (was 2)", text)

    def test_the_first_predictions_alone(self):
        self.program.factor = 1.02
        code, text = self.tool("check", count=1)
        self.assertEqual(code, 0)
        self.assertIn("0 of 1 prediction changed", text)

    def test_show_prints_the_command_and_the_numbers(self):
        code, text = self.tool("show", ids=["p0002"])
        self.assertEqual(code, 0)
        self.assertIn("p0002  tpsim explain --program --model large --precision fp8", text)
        self.assertIn("step_s", text)


if __name__ == "__main__":
    unittest.main()
