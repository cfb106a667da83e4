"""tpsim_recipes lets small frameworks judge arguments and configuration files. Argument: the folder with the package."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from small_frameworks import BRIDGE, ENGINE, LAUNCHER, MODULE, TITAN, TRAINER

JUDGES = os.environ["TPSIM_JUDGES"]
PACKAGES = pathlib.Path(sys.argv.pop(1)).resolve()
START = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('tpsim_recipes', run_name='__main__', alter_sys=True)"


class Judges(unittest.TestCase):
    def judge(self, framework, checkout, given, **files):
        with tempfile.TemporaryDirectory() as kept:
            folder = pathlib.Path(kept).resolve()
            for name, text in checkout.items():
                path = folder / "checkout" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            (folder / "given").mkdir()
            for name, text in {"arguments.json": json.dumps({"arguments": [], **given}), **files}.items():
                (folder / "given" / name.replace("_", ".")).write_text(text, encoding="utf-8")
            command = [sys.executable, "-I", "-S", "-c", START, str(PACKAGES), "--checkout", str(folder / "checkout"), "check",
                       framework, str(folder / "given" / "arguments.json")]
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)

    def titan(self, *words, layers=2, module=""):
        return self.judge("torchtitan", TITAN, {"arguments": list(words), "environment": {"WORLD_SIZE": "8"}, "module": module,
                                                "model": {"layers": layers, "hidden": 32, "experts": 0}})

    def test_torchtitan_configurations_are_changed_by_the_module_of_the_script(self):
        words = ("--parallelism.shards", "8", "--module", "torchtitan_plan", "--config", "narrow")
        answer = self.titan(*words, module=MODULE)
        self.assertIn("more shards than columns", answer["message"])
        missing = self.titan(*words, module=MODULE, layers=3)
        self.assertTrue(missing["accepted"], missing)
        self.assertEqual(missing["settings"]["config"], "narrow")

    def test_torchtitan_resolves_the_options_and_checks_the_trainer(self):
        answer = self.titan("--parallelism.shards", "8", "--parallelism.no-sequence", "--parallelism.policy=never")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"], {"parallelism.shards": 8, "parallelism.no_sequence": True,
                                              "parallelism.policy": "never"})
        self.assertNotIn("notes", answer)
        chosen = self.titan("--parallelism.shards", "8", "recompute:full", "--recompute.debug")
        self.assertEqual((chosen["accepted"], chosen["settings"]["recompute"]), (True, "full"))
        self.assertIn("registry has no configuration", self.titan("--parallelism.shards", "8", layers=3)["notes"][0])
        chunks = ("--parallelism.shards", "8", "--loss.num_chunks", "4")
        self.assertIn("unrecognized option: --loss.num_chunks", self.titan(*chunks)["message"])
        self.assertEqual(self.titan(*chunks, layers=3)["settings"]["loss.num_chunks"], 4)

    def test_torchtitan_rejects_options_with_its_message(self):
        for words, message in ((["--parallelism.shards", "4"], "4 shards on 8 ranks"),
                               (["--parallelism.shards", "65"], "at most 64 shards"),
                               (["--parallelism.shard", "8"], "unrecognized option: --parallelism.shard"),
                               (["--parallelism.policy", "ever"], "choose from always, never"),
                               (["--parallelism.shards", "many"], "not of type int"),
                               (["--parallelism.shards"], "needs a value"),
                               (["--model_spec", "x"], "unrecognized option"),
                               (["--recompute.debug"], "unrecognized option"),
                               (["recompute:some"], "unrecognized argument"),
                               (["--parallelism.sequence=true"], "does not take a value")):
            answer = self.titan(*words)
            self.assertFalse(answer["accepted"], words)
            self.assertIn(message, answer["message"])

    def engine(self, zero, batch=16):
        return self.judge("megatron-deepspeed", ENGINE, {
            "file": "ds.json", "environment": {"WORLD_SIZE": "8"}, "arguments": ["--tensor-model-parallel-size", "2"]},
            ds_json=json.dumps({"train_batch_size": batch, "zero_optimization": zero}))

    def test_deepspeed_reads_its_json(self):
        answer = self.engine({"stage": 3, "bucket_size": "7", "offload": {"device": "cpu"}})
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["zero_optimization.stage"], 3)
        self.assertEqual(answer["settings"]["zero_optimization.offload.device"], "cpu")
        for zero, message in (({"stage": 5}, "one of 0, 3"), ({"bucket_size": 0}, "at least 1"),
                              ({"level": 1}, "no field 'level'"), ({"offload": {}}, "offload needs stage 3")):
            self.assertIn(message, self.engine(zero)["message"])
        self.assertIn("batch", self.engine({}, batch=6)["message"])

    def test_deepspeed_reads_the_json_of_a_trainer(self):
        def judged(tensor, *words):
            text = json.dumps({"train_batch_size": 4, "zero_optimization": {"stage": 3},
                               "data_types": {"grad_accum_dtype": "fp32"}, "tensor_parallel": {"autotp_size": tensor}})
            engine = {**ENGINE, "deepspeed/runtime/config.py": ENGINE["deepspeed/runtime/config.py"] + """
        self.grad_accum_dtype = given["data_types"]["grad_accum_dtype"]
        self.tensor_parallel_config = given["tensor_parallel"]
"""}
            return self.judge("deepspeed", {**engine, **TRAINER}, {
                "file": "ds.json", "environment": {"WORLD_SIZE": "8"}, "arguments": list(words)}, ds_json=text)
        answer = judged(2, "--per_device_train_batch_size", "1", "--bf16", "true")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["data_types.grad_accum_dtype"], "fp32")
        self.assertEqual(answer["settings"]["tensor_parallel.autotp_size"], 2)
        self.assertEqual(answer["settings"]["per_device_train_batch_size"], 1)
        self.assertIn("batch", judged(1)["message"])  # 8 ranks for 4 samples
        self.assertIn("unrecognized arguments", judged(2, "--other", "1")["message"])

    def launcher(self, kind, precision):
        text = f"# a comment\ndistributed_type: {kind}\nfsdp_config:\n  fsdp_offload_params: false\n" \
            f"  fsdp_version: 2\n  fsdp_reshard_after_forward: true\nmixed_precision: {precision}\nnum_machines: 2\n"
        return self.judge("accelerate", LAUNCHER, {"file": "run.yaml", "environment": {}}, run_yaml=text)

    def test_accelerate_reads_its_yaml(self):
        answer = self.launcher("FSDP", "bf16")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["fsdp_config.fsdp_version"], 2)
        self.assertIs(answer["settings"]["fsdp_config.fsdp_reshard_after_forward"], True)
        self.assertIs(answer["settings"]["fsdp_config.fsdp_offload_params"], False)
        self.assertEqual(answer["settings"]["num_machines"], 1)
        self.assertIn("'bool' object", self.launcher("FSDP", "no")["message"])  # YAML 1.1 reads false
        self.assertIs(self.launcher("NO", "'no'")["settings"]["distributed_type"], False)

    def test_a_missing_package_of_judges_is_named(self):
        os.environ["TPSIM_JUDGES"] = "/nowhere"
        try:
            self.assertIn("tpsim_judges is not installed", self.launcher("FSDP", "bf16")["error"])
        finally:
            os.environ["TPSIM_JUDGES"] = JUDGES

    def trainer(self, *words):
        return self.judge("accelerate", {**LAUNCHER, **TRAINER}, {
            "file": "run.yaml", "environment": {}, "arguments": list(words)},
            run_yaml="distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\n")

    def test_transformers_reads_the_arguments_of_the_script(self):
        answer = self.trainer("--per_device_train_batch_size", "-2", "--max_length", "64", "--bf16", "true")
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(answer["settings"]["per_device_train_batch_size"], 2)
        self.assertNotIn("notes", answer)
        for words, message in ((["--per_device_train_batch", "2"], "unrecognized arguments: --per_device_train_batch"),
                               (["--per_device_train_batch_size", "two"], "invalid int value")):
            self.assertIn(message, self.trainer(*words)["message"])
        self.assertIn("transformers is not in a checkout", self.launcher("FSDP", "bf16")["notes"][0])

    def bridge(self, **fields):
        kind = "megatron.bridge.training.mixed_precision.MixedPrecisionConfig"
        return self.judge("megatron-bridge", BRIDGE, {"environment": {}, "model": {"num_layers": 4}, "overrides": {
            "model.seq_length": 32, "mixed_precision._target_": kind,
            **{f"mixed_precision.{key}": value for key, value in fields.items()}}})

    def test_megatron_bridge_creates_the_objects_of_sections(self):
        answer = self.bridge(fp8="hybrid", gathers=True, **{"params._target_": "enum.Enum", "params._call_": False})
        self.assertEqual(answer.get("settings"), {"model.seq_length": 32, "mixed_precision.fp8": "hybrid",
                                                  "mixed_precision.gathers": True}, answer)
        self.assertIn("nothing to gather", self.bridge(gathers=True)["message"])
        self.assertIn("mixed_precision.fp9 is not a setting", self.bridge(fp9="hybrid")["message"])

    def test_a_checkout_of_another_framework_is_refused(self):
        given = {"overrides": {}, "arguments": [], "environment": {}, "file": "run.yaml"}
        for framework, module in (("megatron-lm", "megatron.training"), ("megatron-bridge", "megatron.bridge"),
                                  ("accelerate", "accelerate.commands"), ("torchtitan", "torchtitan")):
            answer = self.judge(framework, {"other/__init__.py": ""}, given, run_yaml="a: 1")
            self.assertIn("the checkouts do not contain " + module, answer.get("error", ""), framework)


unittest.main()
