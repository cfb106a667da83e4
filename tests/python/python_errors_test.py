"""import tpsim fails with the text of the command line, and has its types and manners. Run by ctest as
program_answers.py says.
"""

import ast
import copy
import dataclasses
import inspect
import os
import pickle
import tempfile
import threading
import time
import typing
import unittest

from program_answers import SMALL, run

import tpsim
from tpsim import _calls, _options, _program, _reports, _values


class SameErrors(unittest.TestCase):
    def check(self, call, *words):
        code, _, err = run(*words)
        with self.assertRaises(tpsim.Error) as raised:
            call()
        self.assertEqual(f"tpsim: error: {raised.exception}\n", err)
        self.assertEqual(raised.exception.exit_code, code)
        return raised.exception

    def test_a_typo_names_the_nearest(self):
        error = self.check(lambda: tpsim.plan("blom-176b", gpus=8),
                           *"plan --model blom-176b --gpus 8".split())
        self.assertEqual((error.kind, error.where), ("bad_input", "--model"))
        self.assertIn("did you mean", error.hint)

    def test_values(self):
        self.check(lambda: tpsim.plan("bloom-176b", gpus=0), *"plan --model bloom-176b --gpus 0".split())
        self.check(lambda: tpsim.plan("bloom-176b", gpus=8, tp="x"),
                   *"plan --model bloom-176b --gpus 8 --tp x".split())
        self.check(lambda: tpsim.simulate(), "simulate")
        self.check(lambda: tpsim.simulate("nowhere.json"), "simulate", "nowhere.json")
        self.check(lambda: tpsim.campaign(model="bloom-560m", tokens="many"),
                   *"campaign --model bloom-560m --tokens many".split())
        self.check(lambda: tpsim.validate("nowhere.csv"), "validate", "--runs", "nowhere.csv")

    def test_what_does_not_fit(self):
        error = self.check(lambda: tpsim.plan("bloom-7b1", gpus=1, global_batch=8),
                           *"plan --model bloom-7b1 --gpus 1 --global-batch 8".split())
        self.assertEqual(error.kind, "does_not_fit")
        error = self.check(lambda: tpsim.simulate(model="bloom-7b1", global_batch=8),
                           *"simulate --model bloom-7b1 --global-batch 8".split())
        self.assertEqual(error.exit_code, 3)
        roomy = tpsim.simulate(model="bloom-7b1", global_batch=8, allow_oom=True)
        self.assertGreater(roomy.predicted.p_oom, 0.5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            roomy.plan.save(path)
            error = self.check(lambda: tpsim.campaign(roomy.plan, tokens=1e9), "campaign", path,
                               "--tokens", "1e9")
            self.assertEqual(error.kind, "does_not_fit")
            error = self.check(lambda: tpsim.export(roomy.plan, to="megatron-deepspeed"), "export",
                               path, "--to", "megatron-deepspeed")
            self.assertEqual(error.kind, "does_not_fit")
        tpsim.campaign(roomy.plan, tokens=1e9, allow_oom=True)

    def test_what_an_export_loses(self):
        plan = tpsim.simulate(model="llama-3-8b", cluster="dgx-h100", stack="megatron-core", tp=4,
                              dp=2, recompute="full", sequence_parallel=True, global_batch=16,
                              norm_kernel="torch").plan
        with self.assertRaisesRegex(tpsim.Error, "has no option for norm_kernel torch.*allow-loss") as caught:
            tpsim.export(plan, to="megatron-lm")
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertIn("megatron-lm.sh", tpsim.export(plan, to="megatron-lm", allow_loss=True))

    def test_what_a_stack_refuses(self):
        plan = tpsim.simulate(model="bloom-560m", attention="flash",
                              ignore_stack_limits=True).plan
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            plan.save(path)
            self.check(lambda: tpsim.export(plan, to="megatron-deepspeed"), "export", path, "--to",
                       "megatron-deepspeed")


class TypesAndManners(unittest.TestCase):
    def test_no_plan_where_one_is_needed_is_a_type_error(self):
        for call in (lambda: tpsim.export(None, to="slurm"),
                     lambda: tpsim.check_log("training.log", plan=None)):
            with self.assertRaisesRegex(TypeError, "needs a plan"):
                call()

    def test_what_explains_no_plan_of_its_own_has_the_reports_keys(self):
        runs = os.path.join(os.environ["TPSIM_SOURCE_DIR"], "data/published_runs/bloom_jean_zay.csv")
        with self.assertRaises(TypeError):
            tpsim.explain(runs=runs, row="A-097")

    def test_the_written_options_are_those_of_the_program(self):
        options = _program.call("options").document
        self.assertEqual(list(options), list(_options.OPTIONS))
        for name, rows in options.items():
            self.assertEqual([tuple(row.values()) for row in rows], list(_options.OPTIONS[name]), name)
        self.assertEqual(_program.call("version").document, tpsim.__version__)
        code, out, _ = run("--version")
        self.assertEqual((code, out.split()[1].strip(",")), (0, tpsim.__version__))

    def test_keywords_are_the_options(self):
        for name, options in _options.OPTIONS.items():
            own = {"runs", "row", "diff", "rank", "model", "from_", "launch", "log", "plan", "plans", "measured",
                   "to"}
            given = set(inspect.signature(getattr(tpsim, name)).parameters)
            names = {option[0] for option in options}
            self.assertEqual(given - own, names - own - {"from"}, name)

    def test_an_unknown_keyword_names_the_nearest(self):
        with self.assertRaisesRegex(TypeError, "'micro_bach'; did you mean 'micro_batch'"):
            tpsim.simulate(model="bloom-560m", micro_bach=2)

    def test_a_keyword_of_another_program_is_answered_as_on_the_command_line(self):
        for call in (tpsim.plan, tpsim.simulate):
            with self.assertRaisesRegex(TypeError, "'lora': write --finetune lora"):
                call(model="bloom-560m", gpus=8, lora=16) if call is tpsim.plan else call(lora=16)
        with self.assertRaisesRegex(TypeError, "'gradient_checkpointing': write --recompute full"):
            tpsim.plan("bloom-560m", gpus=8, gradient_checkpointing=True)

    def test_the_stub_of_the_calls_has_their_keywords(self):
        folder = os.path.dirname(tpsim.__file__)
        with open(os.path.join(folder, "_calls.pyi"), encoding="utf-8") as stub:
            tree = ast.parse(stub.read())
        written = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                names = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
                written.setdefault(node.name, []).append(names)
        for name in _options.OPTIONS:
            for names in written[name]:
                self.assertEqual(names, list(inspect.signature(getattr(tpsim, name)).parameters))
        # explain has one overload per report: explanation, why-not, what-if, program, memory.
        self.assertEqual(len(written["explain"]), 5)

    def test_everything_public_says_what_it_is(self):
        for name in tpsim.__all__:
            self.assertTrue(getattr(tpsim, name).__doc__, name)
        for name in _options.OPTIONS:
            hints = typing.get_type_hints(getattr(tpsim, name))
            missing = set(inspect.signature(getattr(tpsim, name)).parameters) - set(hints)
            self.assertEqual(missing, set(), name)
        folder = os.path.dirname(tpsim.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))

    def test_no_two_results_have_one_name(self):
        self.assertEqual(len(_reports.__all__), len(set(_reports.__all__)))
        self.assertTrue(all(dataclasses.is_dataclass(kind) for kind in _values.Value.__subclasses__()))

    def test_values_are_values(self):
        plan = tpsim.simulate(model="bloom-560m", **SMALL).plan
        with self.assertRaises(dataclasses.FrozenInstanceError):
            plan.tp = 4
        with self.assertRaises(dataclasses.FrozenInstanceError):
            del plan.tp
        same = dataclasses.replace(plan)
        self.assertEqual((same, repr(same)), (plan, repr(plan)))
        self.assertNotEqual(dataclasses.replace(plan, tp=4), plan)
        self.assertNotEqual(plan, plan.predicted)
        stage = plan.predicted.memory_gib.by_stage[0]
        self.assertEqual(hash(dataclasses.replace(stage)), hash(stage))
        with self.assertRaisesRegex(TypeError, "needs 'name'"):
            tpsim.Profile(provenance="measured")
        with self.assertRaisesRegex(TypeError, "has no 'nonsense'"):
            tpsim.Profile(name="x", provenance="measured", nonsense=1)
        self.assertEqual(pickle.loads(pickle.dumps(plan)), plan)
        self.assertEqual(copy.deepcopy(plan), plan)
        self.assertEqual(_calls._value("tp", [1, 2]), [1, 2])

    def test_other_threads_run_while_it_searches(self):
        ticks = []
        stop = threading.Event()

        def tick():
            while not stop.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.monotonic()
        tpsim.plan("bloom-176b", gpus=384)
        end = time.monotonic()
        stop.set()
        thread.join()
        during = [at for at in ticks if begin < at < end]
        self.assertGreater(len(during), 5, f"search of {end - begin:.3f} s")


if __name__ == "__main__":
    unittest.main()
