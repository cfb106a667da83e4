"""import tpsim gives the answers of the command line with types, and fails with the same text.

Run by ctest with PYTHONPATH and TPSIM_PROGRAM set.
"""

import ast
import copy
import dataclasses
import inspect
import json
import os
import pickle
import subprocess
import tempfile
import threading
import time
import typing
import unittest
from unittest import mock

import tpsim
from tpsim import _calls, _options, _program, _results

PROGRAM = os.environ["TPSIM_PROGRAM"]
SOURCE = os.environ["TPSIM_SOURCE_DIR"]
SMALL = {"tp": 2, "pp": 2, "dp": 4, "micro_batch": 2, "global_batch": 64}
SMALL_WORDS = "--tp 2 --pp 2 --dp 4 --micro-batch 2 --global-batch 64".split()


FILES = os.path.join(SOURCE, "tests", "cli", "files")
MEASURED = os.path.join(FILES, "measured.csv")


def small_catalogue():
    """Replaces the catalogue by the small one of the golden tests."""
    return mock.patch.dict(os.environ, {"TPSIM_DATA": os.path.join(FILES, "data")})


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def document(*words):
    code, out, err = run(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def fields_against(test, value, data, path="report"):
    """Checks that the keys of a document and the properties
    of its class are the same, with equal values."""
    if dataclasses.is_dataclass(value):
        shown = {one.name for one in dataclasses.fields(value)} - {"document"}
        shown -= {"file"} if isinstance(value, tpsim.Plan) else set()
        optional = {name for name in shown if getattr(value, name) is None}
        test.assertLessEqual(set(data), shown | {"version"}, path)
        test.assertLessEqual(shown - optional, set(data), path)
        for name in shown & set(data):
            fields_against(test, getattr(value, name), data[name], f"{path}.{name}")
    elif isinstance(value, tuple):
        test.assertEqual(len(value), len(data), path)
        for i, item in enumerate(value):
            fields_against(test, item, data[i], f"{path}[{i}]")
    elif isinstance(value, dict):
        test.assertEqual(set(value), set(data), path)
        for key, item in value.items():
            fields_against(test, item, data[key], f"{path}[{key}]")
    else:
        test.assertEqual(value, data, path)


class SameAnswers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "plan.json")

    def saved(self):
        report = tpsim.simulate(model="bloom-560m", **SMALL)
        report.plan.save(self.path)
        return report.plan

    def test_plan(self):
        report = tpsim.plan("bloom-560m", gpus=16, global_batch=64, top=3, tp=[1, 2], zero=1)
        wanted = document(*"plan --model bloom-560m --gpus 16 --global-batch 64 --top 3".split(),
                          "--tp", "1,2", "--zero", 1)
        got = report.to_dict()
        self.assertGreater(got["search"].pop("seconds"), 0)
        wanted["search"].pop("seconds")
        self.assertEqual(got, wanted)
        self.assertEqual(len(report.plans), 3)
        fields_against(self, report, report.to_dict())
        self.assertEqual(report.best.gpus, 16)

    def test_the_first_example(self):
        report = tpsim.plan("bloom-176b", gpus=384)
        wanted = document(*"plan --model bloom-176b --gpus 384".split())
        self.assertEqual(report.to_dict()["plans"], wanted["plans"])
        self.assertEqual(report.best.predicted.step_s, wanted["plans"][0]["predicted"]["step_s"])

    def test_simulate(self):
        report = tpsim.simulate(model="bloom-560m", **SMALL)
        wanted = document("simulate", "--model", "bloom-560m", *SMALL_WORDS)
        self.assertEqual(report.to_dict(), wanted)
        self.assertEqual(report.predicted.step_s, wanted["predicted"]["step_s"])
        fields_against(self, report.predicted, wanted["predicted"])
        parts = sum(report.predicted.breakdown_s.values())
        self.assertAlmostEqual(parts, report.predicted.step_s, places=9)

    def test_simulate_a_saved_plan_or_a_plan_in_hand(self):
        plan = self.saved()
        wanted = document("simulate", self.path, "--micro-batch", 4)
        self.assertEqual(tpsim.simulate(self.path, micro_batch=4).to_dict(), wanted)
        self.assertEqual(tpsim.simulate(plan, micro_batch=4).to_dict(), wanted)
        loaded = tpsim.load_plan(self.path)
        self.assertEqual(dataclasses.replace(loaded, predicted=plan.predicted), plan)

    def test_switches(self):
        report = tpsim.simulate(model="llama-3-8b", cluster="dgx-a100", tp=8, global_batch=8,
                                sequence_parallel=True, no_count_embedding=True)
        wanted = document(*"simulate --model llama-3-8b --cluster dgx-a100 --tp 8 --global-batch 8".split(),
                          *"--sequence-parallel on --no-count-embedding".split())
        self.assertEqual(report.to_dict(), wanted)

    def test_explain(self):
        report = tpsim.explain(model="bloom-560m", **SMALL)
        wanted = document("explain", "--model", "bloom-560m", *SMALL_WORDS)
        self.assertEqual(report.to_dict(), wanted)
        fields_against(self, report, wanted)
        best = tpsim.explain(model="bloom-560m", gpus=8, global_batch=64)
        wanted = document(*"explain --model bloom-560m --gpus 8 --global-batch 64".split())
        self.assertEqual(best.to_dict(), wanted)

    def test_why_not(self):
        asked = dict(model="bloom-560m", gpus=8, global_batch=64)
        words = "explain --model bloom-560m --gpus 8 --global-batch 64".split()
        got = tpsim.explain(**asked, why_not="tp=8")
        wanted = document(*words, "--why-not", "tp=8")
        self.assertEqual(got.to_dict(), wanted)
        self.assertIsInstance(got, tpsim.WhyNotReport)
        self.assertEqual(got.other.tp, 8)
        self.assertAlmostEqual(sum(row.difference_s for row in got.waterfall),
                               got.other.predicted.step_s - got.best.predicted.step_s)
        illegal = tpsim.explain(**asked, why_not=["tp=8", "micro-batch=3"])
        self.assertEqual(illegal.to_dict(), document(*words, "--why-not", "tp=8,micro-batch=3"))
        self.assertIsNone(illegal.other)

    def test_program(self):
        got = tpsim.explain(model="bloom-560m", program=True, **SMALL)
        wanted = document("explain", "--model", "bloom-560m", "--program", *SMALL_WORDS)
        self.assertEqual(got.to_dict(), wanted)
        self.assertIsInstance(got, tpsim.ProgramReport)
        block = next(one for one in got.programs if one.part == "block")
        self.assertEqual(block.count, 24)
        self.assertEqual(len(block.phases[0].events), len(wanted["programs"][2]["phases"][0]["events"]))

    def test_memory(self):
        got = tpsim.explain(model="bloom-560m", memory=True, **SMALL)
        wanted = document("explain", "--model", "bloom-560m", "--memory", *SMALL_WORDS)
        self.assertEqual(got.to_dict(), wanted)
        self.assertIsInstance(got, tpsim.MemoryReport)
        peak = max(sum(live.bytes for live in stage.live) for stage in got.stages)
        self.assertAlmostEqual(peak / 2**30, got.predicted.memory_gib.peak, places=3)

    def test_memory_snapshot(self):
        path = os.path.join(tempfile.mkdtemp(), "rank0.pickle")
        code, _, err = run("explain", "--model", "bloom-560m", "--memory", *SMALL_WORDS, "--save-snapshot", path)
        self.assertEqual(code, 0, err)
        with open(path, "rb") as file:
            snapshot = pickle.load(file)
        self.assertEqual(len(snapshot["device_traces"]), 1)
        got = tpsim.explain(model="bloom-560m", memory=True, snapshot=path, **SMALL)
        allocated = next(one for one in got.measured.compared if one.what == "allocated")
        self.assertAlmostEqual(allocated.measured_bytes / allocated.predicted_bytes, 1, delta=0.1)

    def test_what_if(self):
        got = tpsim.explain(model="bloom-560m", gpus=8, global_batch=64, what_if=True)
        wanted = document(*"explain --model bloom-560m --gpus 8 --global-batch 64 --what-if".split())
        self.assertEqual(got.to_dict(), wanted)
        self.assertIsInstance(got, tpsim.WhatIfReport)
        self.assertEqual(len(got.sensitivities), len(wanted["sensitivities"]))
        self.assertEqual(len(got.shape), len(wanted["shape"]))
        one = tpsim.explain(model="bloom-560m", what_if=True, **SMALL)
        self.assertEqual(one.to_dict(),
                         document("explain", "--model", "bloom-560m", "--what-if", *SMALL_WORDS))
        self.assertEqual(one.plan_break_evens, ())

    def test_questions_of_a_saved_plan(self):
        plan = self.saved()
        self.assertEqual(tpsim.explain(plan, what_if=True).to_dict(),
                         document("explain", self.path, "--what-if"))
        self.assertEqual(tpsim.explain(plan, why_not="tp=4").to_dict(),
                         document("explain", self.path, "--why-not", "tp=4"))
        anew = tpsim.plan(plan).to_dict()
        wanted = document("plan", self.path)
        for report in (anew, wanted):
            report["search"].pop("seconds")
        self.assertEqual(anew, wanted)

    def test_campaign(self):
        plan = self.saved()
        got = tpsim.campaign(plan, tokens=3e9, ramp=[16, 16, 1000], lost_nodes=1, seed=5,
                             downtime="3h", pue=1.1)
        wanted = document("campaign", "--plan", self.path, "--tokens", "3e9", "--ramp",
                          "16,16,1000", "--lost-nodes", 1, "--seed", 5, "--downtime", "3h", "--pue",
                          "1.1")
        self.assertEqual(got.to_dict(), wanted)
        fields_against(self, got, wanted)
        with self.assertRaises(ValueError):
            got.plan.save(self.path)

    def test_export_and_import(self):
        plan = self.saved()
        files = tpsim.export(plan, to="megatron-deepspeed")
        folder = os.path.join(self.folder.name, "launch")
        code, _, err = run("export", self.path, "--to", "megatron-deepspeed", "-o", folder)
        self.assertEqual((code, err), (0, ""))
        for name, text in files.items():
            with open(os.path.join(folder, name), encoding="utf-8") as written:
                self.assertEqual(text, written.read())
        back = tpsim.import_plan(folder, from_="megatron-deepspeed", model="bloom-560m")
        self.assertEqual(dataclasses.replace(back, predicted=plan.predicted), plan)
        self.assertEqual(tpsim.import_plan(folder), back)
        code, out, _ = run("import", folder, "--from", "megatron-deepspeed", "--model",
                           "bloom-560m", "--json")
        self.assertEqual((code, out), (0, back.text()))

    def test_check_log(self):
        plan = self.saved()
        log = os.path.join(self.folder.name, "training.log")
        with open(log, "w", encoding="utf-8") as out:
            for i in range(9):
                out.write(f" iteration {i}/ 9 | elapsed time per iteration (ms): 900000.0 | "
                          "global batch size: 64 |\n")
        got = tpsim.check_log(log, plan=plan)
        wanted = document("check-log", log, "--plan", self.path)
        self.assertEqual(got.to_dict(), wanted)
        fields_against(self, got, wanted)
        self.assertEqual(got.findings[0].cause, "unexplained")

    def test_a_trace_is_a_log(self):
        plan = self.saved()
        trace = os.path.join(self.folder.name, "trace.json")
        events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}",
                   "ts": 1e9 * i, "dur": 1e9} for i in range(3)]
        events += [{"ph": "X", "cat": "kernel", "name": name, "ts": 1e9 * i + at, "dur": 1e8,
                    "args": {"device": 0}} for i in range(3)
                   for at, name in ((0, "sm90_xmma_gemm"), (2e8, "ncclKernel_AllReduce_RING"))]
        with open(trace, "w", encoding="utf-8") as out:
            json.dump({"traceEvents": events}, out)
        got = tpsim.check_log(trace, plan=plan)
        wanted = document("check-log", trace, "--plan", self.path)
        self.assertEqual(got.to_dict(), wanted)
        fields_against(self, got, wanted)
        self.assertEqual(got.kernels.collectives[0].name, "AllReduce")
        self.assertAlmostEqual(got.kernels.parts[0].measured_s, 100)

    def test_validate(self):
        runs = os.path.join(SOURCE, "data", "published_runs", "megatron_selene.csv")
        got = tpsim.validate(runs)
        wanted = document("validate", "--runs", runs)
        self.assertEqual(got.to_dict(), wanted)
        fields_against(self, got, wanted)

    def test_scaling(self):
        got = tpsim.scaling("bloom-560m", gpus=[4, 8], global_batch=64)
        wanted = document(*"plan --model bloom-560m --gpus 4,8 --global-batch 64".split())
        self.assertEqual(got.to_dict(), wanted)
        fields_against(self, got, wanted)

    def test_compare(self):
        plans = [tpsim.simulate(model="bloom-560m", **{**SMALL, "tp": tp, "dp": 8 // tp}).plan
                 for tp in (1, 2)]
        got = tpsim.compare(plans)
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"plan-{i + 1}.json") for i in range(2)]
            for plan, path in zip(plans, paths):
                plan.save(path)
            wanted = document("compare", *paths)
        for one, data, plan in zip(got.plans, wanted["plans"], plans):
            self.assertEqual(dataclasses.replace(one.plan, ties=None), plan)  # with its interval
            for key in set(data) & {field.name for field in dataclasses.fields(one)} - {"file"}:
                self.assertEqual(getattr(one, key), data[key], key)
        self.assertEqual({key: list(texts) for key, texts in got.differs.items()}, wanted["differs"])

    def test_calibrate(self):
        with tempfile.TemporaryDirectory() as folder, small_catalogue():
            path = os.path.join(folder, "stack.json")
            got = tpsim.calibrate(MEASURED, cluster="four-nodes", save_stack=path)
            self.assertTrue(os.path.exists(path))
            wanted = document("calibrate", MEASURED, "--cluster", "four-nodes", "--save-stack", path)
        self.assertEqual(got.to_dict(), wanted)
        fields_against(self, got, wanted)

    def test_run(self):
        model = os.path.join(FILES, "data", "models", "tiny.json")
        plan = tpsim.simulate(model=model, cluster="dgx-h100", stack="reference", seq=16, micro_batch=1,
                              global_batch=2).plan
        with tempfile.TemporaryDirectory() as folder:
            got = tpsim.run(plan, steps=2)
            path = os.path.join(folder, "plan.json")
            plan.save(path)
            wanted = document("run", path, "--steps", 2)
            with self.assertRaises(tpsim.Error) as raised:
                tpsim.run(plan, steps=-1)
        self.assertTrue(got.completed)
        self.assertEqual([step.loss for step in got.steps], [step["loss"] for step in wanted["steps"]])
        fields_against(self, got, got.to_dict())
        self.assertEqual((raised.exception.kind, raised.exception.exit_code), ("bad_input", 2))

    def test_the_catalogue(self):
        for kind in ("models", "clusters", "profiles", "stacks"):
            names = [entry["name"] for entry in document("list", kind)["entries"]]
            self.assertEqual(getattr(tpsim, kind)(), sorted(names))  # models are listed by family


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
        with open(_results.__file__, encoding="utf-8") as source:
            tree = ast.parse(source.read())
        names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        self.assertEqual(sorted(names), sorted(set(names)))
        self.assertTrue(all(dataclasses.is_dataclass(kind) for kind in _results.Value.__subclasses__()))

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
