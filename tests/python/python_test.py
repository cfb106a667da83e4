"""import tpsim gives the answers of the command line with types. Run by ctest as program_answers.py says."""

import dataclasses
import json
import os
import pickle
import tempfile
import unittest

from program_answers import FILES, MEASURED, SMALL, SMALL_WORDS, SOURCE, document, fields_against, run, small_catalogue

import tpsim


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


if __name__ == "__main__":
    unittest.main()
