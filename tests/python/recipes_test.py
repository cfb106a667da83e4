"""tpsim_recipes runs recipes under stubs, and limits
their actions. Argument: the folder with the package."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGES = pathlib.Path(sys.argv.pop(1)).resolve()
START = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('tpsim_recipes', run_name='__main__', alter_sys=True)"

# A small framework: a configuration of dataclasses, a base class that is not installed, and a
# program to start.
FRAMEWORK = {
    "megatron/bridge/training/pretrain.py": """
def pretrain(config, forward_step_func):
    raise RuntimeError("this trains")
""",
    "megatron/bridge/training/config.py": """
from dataclasses import dataclass, field
from typing import override

import torch
from omegaconf import OmegaConf
from torch import nn


class Layer(nn.Module):
    @override
    def forward(self):
        pass


@dataclass
class Base:
    tensor_model_parallel_size: int = 1
    dtype: object = torch.bfloat16
    modules: list = field(default_factory=list)


@dataclass
class Model(Base):
    tensor_model_parallel_size: int = 2
    layers: int = 4


@dataclass
class Config:
    model: Model
    limit: float = float("inf")
""",
    "megatron/bridge/broken.py": "import torch\n\nclass Odd(torch.Tensor, metaclass=type('Meta', (type,), {})):\n    pass\n",
}
SCRIPT = """
import argparse
from megatron.bridge.broken import Odd
from megatron.bridge.training.config import Config, Model
from megatron.bridge.training.pretrain import pretrain


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tp", type=int, default=4)
    config = Config(model=Model(layers=8))
    config.model.tensor_model_parallel_size = parser.parse_args().tp
    print("noise")
    pretrain(config=config, forward_step_func=None)


if __name__ == "__main__":
    main()
"""


class Recipes(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name).resolve()
        for name, text in FRAMEWORK.items():
            path = self.folder / "checkout" / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def run_recipe(self, text, *words, seconds=20, name="recipe.py", folder="own"):
        path = self.folder / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-I", "-S", "-c", START, str(PACKAGES), "--seconds", str(seconds), "--checkout",
                   str(self.folder / "checkout"), "recipe", str(path), *words]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        return json.loads(run.stdout)

    def value_of(self, body, **limits):
        """Returns the value that a recipe with this function body configures, or its error."""
        lines = "\n".join("    " + line for line in body.splitlines())
        answer = self.run_recipe(f"import os\n\n\ndef our_config():\n{lines}\n    return {{'value': str(value)}}\n",
                                 "--function", "our_config", **limits)
        return answer.get("value", answer.get("error")), answer

    def is_isolated(self):
        return not self.value_of("value = 1")[1]["tpsim_recipe"]["not_isolated"]

    def test_a_script_runs_up_to_where_it_would_train(self):
        answer = self.run_recipe(SCRIPT)
        self.assertEqual(answer["model"]["tensor_model_parallel_size"], 4)
        self.assertEqual(answer["model"]["dtype"], "torch.bfloat16")
        self.assertEqual(answer["limit"], "inf")
        meta = answer["tpsim_recipe"]
        self.assertEqual(meta["framework"], "megatron-bridge")
        self.assertEqual(list(meta["stubs"]), ["megatron.bridge.broken"])
        self.assertEqual(self.run_recipe(SCRIPT, "--set", "tp=8")["model"]["tensor_model_parallel_size"], 8)

    def test_a_default_is_that_of_the_class_that_declared_the_field(self):
        defaults = self.run_recipe(SCRIPT, "--set", "tp=2")["tpsim_recipe"]["defaults"]
        self.assertIn("model.modules", defaults)
        self.assertNotIn("model.layers", defaults)  # 8, not 4
        self.assertNotIn("model.tensor_model_parallel_size", defaults)  # 2 is the subclass's
        emptied = SCRIPT.replace("config.model.tensor", "config.model.others = []\n    config.model.tensor")
        model = self.run_recipe(emptied)["model"]
        self.assertEqual((model["modules"], model["others"]), ([], "[]"))

    def test_one_of_several_recipes_has_to_be_named(self):
        text = "def a_config():\n    return {'x': 1}\n\n\ndef b_config(y):\n    return {'x': y}\n\n\ndef c_config():\n    return {}\n"
        self.assertEqual(self.run_recipe(text)["choices"], ["a_config", "c_config"])
        self.assertEqual(self.run_recipe(text, "--function", "b_config", "--set", "y=3")["x"], 3)
        self.assertIn("needs y", self.run_recipe(text, "--function", "b_config")["error"])
        self.assertIn("no parameter 'z'", self.run_recipe(text, "--function", "a_config", "--set", "z=3")["error"])
        self.assertIn("no function 'd'", self.run_recipe(text, "--function", "d")["error"])

    def test_what_a_recipe_raises_is_its_answer(self):
        answer = self.run_recipe("def our_config():\n    raise ValueError('tp must be 3')\n")
        self.assertEqual(answer["error"], "ValueError: tp must be 3")
        self.assertTrue(answer["hint"].endswith("recipe.py:2"))
        self.assertIn("SyntaxError", self.run_recipe("def our_config(:\n")["error"])

    def test_placements_of_tensors_are_values(self):
        found, _ = self.value_of("from torch.distributed.tensor import Replicate, Shard\n"
                                 "from torch.distributed.tensor.placement_types import Shard as Same\n"
                                 "value = (Shard(1).dim, type(Shard(0)) is Same, Shard(0) == Same(0), Shard(0) == Replicate())")
        self.assertEqual(found, "(1, True, True, False)")

    def test_a_script_gets_its_arguments_and_the_number_of_gpus(self):
        text = SCRIPT.replace("config = Config(model=Model(layers=8))",
                              "import torch\n    config = Config(model=Model(layers=torch.distributed.get_world_size()))")
        model = self.run_recipe(text, "--words", '["--tp", "16"]', "--gpus", "64")["model"]
        self.assertEqual((model["tensor_model_parallel_size"], model["layers"]), (16, 64))
        refused = self.run_recipe(text, "--words", '["--odd"]')["error"]
        self.assertIn("refuses the arguments: unrecognized arguments: --odd", refused)
        self.assertIn("does not start a training", self.run_recipe("x = 1\n", "--words", "[]")["error"])

    def test_a_task_of_a_scheduler_runs_with_its_gpus(self):
        launcher = """
import os
import sys
import nemo_run as run
from filelock import Timeout
from nemo_run.config import get_nemorun_home

if __name__ == "__main__":
    try:
        os.makedirs(get_nemorun_home())
        executor = run.SlurmExecutor(nodes=4, ntasks_per_node=8)
    except Timeout:
        pass
    task = run.Script(path="/opt/container/bootstrap.py", args=sys.argv[1:])
    run.run(task, executor=executor)
"""
        own = self.folder / "own"
        own.mkdir()
        (own / "bootstrap.py").write_text("import os, sys\nos.execvpe(sys.executable, [sys.executable, "
                                          f"'{own}/train.py', *sys.argv[1:]], {{}})\n", encoding="utf-8")
        (own / "train.py").write_text(SCRIPT, encoding="utf-8")
        answer = self.run_recipe(launcher, "--words", '["--tp", "8"]', name="launch.py")
        self.assertEqual(answer["model"]["tensor_model_parallel_size"], 8, answer)
        self.assertEqual(answer["tpsim_recipe"]["gpus"], 32)

    # The provider's default of a field hides that of its base. The bridge of an architecture selects other fusions.
    BRIDGES = {
        "megatron/bridge/models/__init__.py": "",
        "megatron/bridge/models/conversion/auto_bridge.py": "class AutoBridge:\n    pass\n",
        "megatron/bridge/models/gpt_provider.py": """
from dataclasses import dataclass, field


@dataclass
class Base:
    bias_dropout_fusion: bool = False
    gradient_accumulation_fusion: bool = False


@dataclass
class GPTModelProvider(Base):
    gradient_accumulation_fusion: bool = field(default_factory=lambda: True)
""",
        "megatron/bridge/models/qwen/qwen3_moe_bridge.py": """
@MegatronModelBridge.register_bridge(source="Qwen3MoeForCausalLM", target=GPTModel)
class Qwen3MoEBridge:
    def provider_bridge(self, hf_pretrained):
        provider = super().provider_bridge(hf_pretrained)
        provider.bias_dropout_fusion = True
        return provider
""",
        "megatron/bridge/models/qwen/qwen3_bridge.py": """
@MegatronModelBridge.register_bridge(source=Qwen3ForCausalLM, target=GPTModel)
class Qwen3Bridge:
    def provider_bridge(self, hf_pretrained):
        return make(bias_dropout_fusion=False)
""",
    }

    def test_the_bridge_of_a_hub_model_selects_fusions(self):
        for name, text in self.BRIDGES.items():
            path = self.folder / "checkout" / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        text = ("from megatron.bridge.models.conversion.auto_bridge import AutoBridge\n\n\ndef our_config():\n"
                "    model = AutoBridge.from_hf_pretrained('Qwen/Qwen3-30B-A3B').to_megatron_provider()\n"
                "    return {'model': model}\n")
        answer = self.run_recipe(text)
        self.assertEqual(answer["tpsim_recipe"]["models"], {"Qwen/Qwen3-30B-A3B": ["num_moe_experts"]})
        self.assertFalse(answer["model"]["bias_dropout_fusion"])
        answer = self.run_recipe(text, "--facts", '{"Qwen/Qwen3-30B-A3B": {"num_moe_experts": 128}}')
        self.assertTrue(answer["model"]["bias_dropout_fusion"])
        self.assertTrue(answer["model"]["gradient_accumulation_fusion"])
        self.assertNotIn("model.gradient_accumulation_fusion", answer["tpsim_recipe"]["defaults"])

    def test_a_recorded_configuration_names_its_class(self):
        found, _ = self.value_of("import nemo_run as run\nfrom data import Mock, Real\n"
                                 "made = run.Config(Mock, samples=1)\n"
                                 "value = (made.__fn_or_cls__ == Mock, made.__fn_or_cls__ == Real)")
        self.assertEqual(found, "(True, False)")

    def test_overrides_of_a_command_line_are_fields(self):
        body = ("import types, tyro\nconfig = types.SimpleNamespace(a=types.SimpleNamespace(b=1, c=True, d={'e': [1, 2]}))\n"
                "tyro.cli(type(config), args={}, default=config)\nvalue = (config.a.b, config.a.c, config.a.d)")
        words = "['--a.b', '2', '--a.no-c', '--a.d.e.1=5']"
        self.assertEqual(self.value_of(body.replace("args={}", "args=" + words))[0], "(2, False, {'e': [1, 5]})")
        self.assertIn("a.x is not a setting", self.value_of(body.replace("args={}", "args=['--a.x=1']"))[0])

    def test_a_loop_ends_with_the_time_it_may_take(self):
        error, _ = self.value_of("value = 0\nwhile True:\n    value += 1", seconds=2)
        self.assertRegex(error, "more than 2 s of CPU time|did not end within 6 s")

    def test_a_sleep_ends_with_the_clock(self):
        error, _ = self.value_of("import time\ntime.sleep(600)\nvalue = 1", seconds=2)
        self.assertIn("did not end within 6 s", error)

    def test_memory_without_end_is_refused(self):
        error, _ = self.value_of("value = len(bytearray(1 << 40))")
        self.assertIn("MemoryError", error)

    def test_no_other_process_is_started(self):
        for body in ("value = os.fork()", "import subprocess\nvalue = subprocess.run(['true'])",
                     "value = os.system('true')", "import multiprocessing\np = multiprocessing.Process()\np.start()\nvalue = 1"):
            self.assertIn("PermissionError", self.value_of(body)[0], body)

    def test_processes_started_around_python_end_with_the_recipe(self):
        body = ("import _posixsubprocess\n"
                "for _ in range(200):\n"
                "    r, w = os.pipe()\n"
                "    try:\n"
                "        _posixsubprocess.fork_exec([b'/bin/sleep'], [b'/bin/sleep'], True, (), None, None, -1, -1, -1, -1, -1, -1,"
                " r, w, False, False, -1, None, None, None, -1, None, False)\n"
                "    except Exception as error:\n"
                "        value = error\n"
                "    os.close(r)\n    os.close(w)\n"
                "value = 'alive'")
        self.value_of(body)
        mine = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
        self.assertNotIn(str(self.folder), mine)

    def test_nothing_outside_is_written(self):
        for place in (self.folder / "written", self.folder / "own" / "written", self.folder / "checkout" / "written"):
            value, _ = self.value_of(f"value = open({str(place)!r}, 'w').write('x')")
            self.assertRegex(value, "OSError|PermissionError|FileNotFoundError")
            self.assertFalse(place.exists())
        value, _ = self.value_of(f"value = os.remove({str(self.folder / 'own' / 'recipe.py')!r})")
        self.assertTrue((self.folder / "own" / "recipe.py").exists(), value)

    def test_nothing_outside_is_read(self):
        if not self.is_isolated():
            self.skipTest("this kernel gives no namespaces")
        secret = self.folder / "secret"
        secret.write_text("x", encoding="utf-8")
        self.assertIn("FileNotFoundError", self.value_of(f"value = open({str(secret)!r}).read()")[0])
        self.assertIn("FileNotFoundError", self.value_of("value = open('/etc/passwd').read()")[0])
        self.assertIn("FileNotFoundError", self.value_of(f"value = os.listdir({os.path.expanduser('~')!r} + '/.ssh')")[0])
        beside = self.folder / "own" / "beside.txt"
        self.run_recipe("")
        beside.write_text("beside", encoding="utf-8")
        self.assertEqual(self.value_of(f"value = open({str(beside)!r}).read()")[0], "beside")

    def test_there_is_no_network(self):
        body = "import socket\ns = socket.socket()\ns.settimeout(1)\nvalue = s.connect(('127.0.0.1', 9))"
        self.assertIn("PermissionError", self.value_of(body)[0])
        if self.is_isolated():
            interfaces, _ = self.value_of("import socket\nvalue = socket.if_nameindex()")
            self.assertEqual(interfaces, "[(1, 'lo')]")

    def test_a_scratch_folder_is_written_and_gone(self):
        if not self.is_isolated():
            self.skipTest("this kernel gives no namespaces")
        self.assertEqual(self.value_of("open('x', 'w').write('y')\nvalue = os.listdir('.')")[0], "['x']")
        self.assertEqual(self.value_of("value = os.listdir('.')")[0], "[]")


class Imports(unittest.TestCase):
    """tpsim import reads the settings of recipes, each in its group."""

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name).resolve()

    def run_import(self, *words):
        return subprocess.run([os.environ["TPSIM_PROGRAM"], "import", *words, "--json"], capture_output=True, text=True,
                              check=False, timeout=600)

    def import_of(self, config, *words, framework="megatron-bridge", defaults=()):
        file = self.folder / "run.json"
        meta = {"framework": framework, "function": "x_pretrain_64gpu_h100_config", "defaults": list(defaults)}
        file.write_text(json.dumps({"tpsim_recipe": meta, **config}), encoding="utf-8")
        return self.run_import(str(file), *words)

    BRIDGE = {"model": {"_target_": "megatron.bridge.models.gpt_provider.GPTModelProvider", "seq_length": 4096,
                        "hf_model_id": "Qwen/Qwen3-30B-A3B", "tensor_model_parallel_size": 2, "sequence_parallel": True,
                        "expert_model_parallel_size": 8, "moe_token_dispatcher_type": "allgather"},
              "train": {"micro_batch_size": 1, "global_batch_size": 512},
              "ddp": {"use_distributed_optimizer": True, "grad_reduce_in_fp32": False},
              "comm_overlap": {"_target_": "CommOverlapConfig", "overlap_grad_reduce": None},
              "optimizer": {"exp_avg_dtype": "torch.float32", "main_grads_dtype": "torch.bfloat16"},
              "mixed_precision": {"bf16": True, "grad_reduce_in_fp32": False}}

    def bridge(self, section, **settings):
        return {**self.BRIDGE, section: {**self.BRIDGE.get(section, {}), **settings}}

    def test_a_hub_model_is_the_catalogues(self):
        run = self.import_of(self.BRIDGE, defaults=["model.moe_token_dispatcher_type"])
        self.assertEqual(run.returncode, 0, run.stderr)
        plan = json.loads(run.stdout)
        self.assertEqual(plan["model"]["name"], "qwen3-30b-a3b")
        self.assertEqual((plan["plan"]["tp"], plan["plan"]["dp"], plan["plan"]["ep"]), (2, 32, 8))
        self.assertEqual(plan["plan"]["gradient_dtype"], "bf16")

    def test_settings_fall_into_their_groups(self):
        unknown = self.bridge("model", moe_new_thing=3)
        self.assertEqual(self.import_of(unknown, defaults=["model.moe_new_thing"]).returncode, 0)
        run = self.import_of(unknown)
        self.assertIn("unknown setting 'model.moe_new_thing'", run.stderr)
        self.assertEqual(self.import_of(unknown, "--set", "model.moe_new_thing=null").returncode, 0)
        self.assertEqual(self.import_of(unknown, "--assume-harmless").returncode, 0)
        self.assertIn("--cpu-offloading-num-layers", self.import_of(self.bridge("model", cpu_offloading=True)).stderr)
        parts = self.bridge("model", fine_grained_activation_offloading=True, offload_modules=["core_attn"])
        self.assertIn("offloaded activations of whole layers", self.import_of(parts).stderr)
        self.assertEqual(self.import_of(self.bridge("model", cpu_offloading_num_layers=8)).returncode, 0)
        self.assertIn("peft", self.import_of({**self.BRIDGE, "peft": {"_target_": "LoRA", "dim": 8}}).stderr)
        more = self.bridge("optimizer", optimizer="dist_muon", muon_num_ns_steps=8)
        self.assertIn("8 Newton-Schulz iterations", self.import_of(more).stderr)
        saving = self.import_of(self.bridge("ddp", nccl_ub=True))
        self.assertEqual(saving.returncode, 0)
        self.assertIn("tpsim does not model ddp.nccl_ub", saving.stderr)

    def parts_of(self, config):
        run = self.import_of(config)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["parts"]

    def test_mechanisms_of_megatron_are_parts(self):
        parts = self.parts_of(self.bridge("model", cpu_offloading=True, cpu_offloading_num_layers=8))
        self.assertEqual(parts["offload_layers"], "8")
        stash = self.bridge("model", moe_expert_rank_capacity_factor=1.5, moe_paged_stash=True,
                            moe_paged_stash_buffer_size_factor_cuda=1.2, moe_paged_stash_buffer_size_factor_cpu=1.0)
        parts = self.parts_of(stash)
        self.assertEqual((parts["expert_capacity"], parts["expert_stash"]), ("1.5", "1.2"))
        muon = self.bridge("optimizer", optimizer="dist_muon", muon_tp_mode="blockwise")
        muon["ddp"] = {"use_distributed_optimizer": False, "grad_reduce_in_fp32": False}
        parts = self.parts_of(muon)
        self.assertEqual((parts["optimizer_kind"], parts["data_parallel_sync"]), ("muon", "all_reduce"))
        self.assertEqual(parts["muon_tp_mode"], "blockwise")

    def test_prediction_layers_may_share_their_weights(self):
        run = self.import_of(self.bridge("model", mtp_num_layers=2, mtp_use_repeated_layer=True))
        model = json.loads(run.stdout)["model"]["extras"]
        self.assertEqual((model["prediction_layers"], model["prediction_shared"]), (2, True))

    HYBRID = {"_target_": "megatron.bridge.models.hybrid.hybrid_provider.HybridModelProvider", "is_hybrid_model": True,
              "num_layers": 4, "hybrid_layer_pattern": "M*M-", "hidden_size": 512, "num_attention_heads": 8,
              "num_query_groups": 2, "kv_channels": 64, "ffn_hidden_size": 2048, "mamba_num_heads": 16, "seq_length": 4096,
              "mamba_head_dim": 64, "mamba_num_groups": 8, "mamba_state_dim": 128,
              "activation_func": "megatron.core.activations.squared_relu"}

    def test_a_pattern_of_layers_is_a_hybrid_model(self):
        config = {"model": self.HYBRID, "train": {"micro_batch_size": 1, "global_batch_size": 512},
                  "tokenizer": {"vocab_size": 32000}, "mixed_precision": {"bf16": True}}
        run = self.import_of(config)
        self.assertEqual(run.returncode, 0, run.stderr)
        model = json.loads(run.stdout)["model"]
        self.assertEqual((model["layers"], model["vocab"], model["mlp"]), (4, 32000, "relu_squared"))
        self.assertEqual(sorted(set(model["blocks"]["of_layers"])), [0, 1, 2])
        other = {**config, "model": {**self.HYBRID, "hybrid_layer_pattern": "M*X-"}}
        self.assertIn("cannot read the layer 'X'", self.import_of(other).stderr)
        other = {**config, "tokenizer": {}}
        self.assertIn("vocab size", self.import_of(other).stderr)

    def test_a_layout_that_the_name_does_not_fit_is_planned_on_more_gpus(self):
        run = self.import_of(self.bridge("model", pipeline_model_parallel_size=16))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("need a multiple of 256 GPUs, but the recipe states 64", run.stderr)

    def test_an_unknown_hub_model_is_named(self):
        run = self.import_of(self.bridge("model", hf_model_id="nobody/nothing"))
        self.assertIn("loads nobody/nothing from the Hugging Face hub, but the catalogue lacks it", run.stderr)
        self.assertEqual(self.import_of(self.bridge("model", hf_model_id="nobody/nothing"), "--model", "qwen3-30b-a3b").returncode, 0)

    def test_nemo_says_the_same_in_other_places(self):
        nemo = {"_target_": "nemo.collections.llm.api.pretrain",
                "model": {"_target_": "LlamaModel", "config": {"_target_": "nemo.llama.Llama3Config8B"}},
                "trainer": {"num_nodes": 2, "devices": 8,
                            "callbacks": [{"_target_": "x.TimingCallback"},
                                          {"_target_": "x.MegatronCommOverlapCallback", "tp_comm_overlap": True}],
                            "strategy": {"tensor_model_parallel_size": 4, "sequence_parallel": True,
                                         "ddp": {"grad_reduce_in_fp32": True}},
                            "plugins": {"precision": "bf16-mixed", "grad_reduce_in_fp32": True}},
                "data": {"seq_length": 8192, "global_batch_size": 64, "micro_batch_size": 1},
                "optim": {"config": {"use_distributed_optimizer": True}}}
        run = self.import_of(nemo, framework="nemo")
        self.assertEqual(run.returncode, 0, run.stderr)
        plan = json.loads(run.stdout)
        self.assertEqual((plan["model"]["name"], plan["model"]["seq"]), ("llama-3-8b", 8192))
        self.assertEqual((plan["plan"]["tp"], plan["plan"]["dp"], plan["plan"]["zero"]), (4, 4, 1))

        nemo["trainer"]["strategy"]["fsdp"] = "megatron"
        nemo["trainer"]["strategy"]["ddp"]["data_parallel_sharding_strategy"] = "optim_grads_params"
        run = self.import_of(nemo, framework="nemo")
        self.assertEqual(json.loads(run.stdout)["plan"]["zero"], 3, run.stderr)

    def test_defaults_of_a_provider_are_not_those_of_a_hub_model(self):
        config = self.bridge("model", overlap_p2p_comm=False, hidden_dropout=0.1, num_layers=0,
                             pipeline_model_parallel_size=4, virtual_pipeline_model_parallel_size=3)
        run = self.import_of(config, defaults=["model.overlap_p2p_comm", "model.hidden_dropout", "model.num_layers"])
        self.assertEqual(run.returncode, 0, run.stderr)
        plan = json.loads(run.stdout)
        self.assertEqual(plan["model"]["hidden_dropout"], 0)
        self.assertNotIn("overlap_p2p", plan.get("parts", {}))  # on, as in the stack
        self.assertEqual(plan["plan"]["virtual_stages"], 3)

    def test_selective_recompute_of_no_modules_is_none(self):
        for modules, recompute in (("[]", "none"), (None, "selective")):
            run = self.import_of(self.bridge("model", recompute_granularity="selective", recompute_modules=modules))
            self.assertEqual(json.loads(run.stdout)["plan"]["recompute"], recompute, run.stderr)

    def test_a_recipe_without_a_number_of_gpus_needs_one(self):
        config = dict(self.BRIDGE)
        file = self.folder / "run.json"
        file.write_text(json.dumps({"tpsim_recipe": {"framework": "megatron-bridge", "function": ""}, **config}),
                        encoding="utf-8")
        run = self.run_import(str(file))
        self.assertEqual(run.returncode, 2)
        self.assertIn("add --gpus N", run.stderr)
        file.write_text(json.dumps({"tpsim_recipe": {"framework": "megatron-bridge", "function": "", "gpus": 128}, **config}),
                        encoding="utf-8")
        self.assertEqual(json.loads(self.run_import(str(file)).stdout)["plan"]["dp"], 64)

    def test_a_file_of_code_is_run_when_it_is_asked_for(self):
        file = self.folder / "recipe.py"
        file.write_text("def our_config():\n    raise ValueError('ran')\n", encoding="utf-8")
        self.assertIn("add --run", self.run_import(str(file)).stderr)
        self.assertIn("ValueError: ran", self.run_import(str(file), "--run").stderr)

    # Parts of an argument parser with Megatron's names, whose defaults are those of no release.
    PARSER = '''
import argparse


def parse_args():
    parser = argparse.ArgumentParser()
    for name, default in (("num-layers", 0), ("hidden-size", 0), ("num-attention-heads", 0), ("seq-length", 0),
                          ("max-position-embeddings", 0), ("micro-batch-size", 1), ("global-batch-size", 1),
                          ("tensor-model-parallel-size", 2), ("vocab-size", 0), ("kv-lora-rank", 32), ("qk-head-dim", 128)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--attention-dropout", type=float, default=0.0)
    parser.add_argument("--hidden-dropout", type=float, default=0.0)
    parser.add_argument("--transformer-impl", default="transformer_engine")
    parser.add_argument("--add-qkv-bias", action="store_true", default=True)
    parser.add_argument("--no-bias-swiglu-fusion", action="store_false", dest="bias_swiglu_fusion", default=False)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--use-distributed-optimizer", action="store_true")
    return parser.parse_args()


def validate_args(args, defaults):
    assert args.num_layers % 2 == 0, "an odd number of layers"


def core_transformer_config_from_args(args):
    return args
'''

    def test_arguments_of_a_script_are_resolved_by_the_checkout(self):
        for name, text in (("arguments.py", self.PARSER), ("__init__.py", "")):
            file = self.folder / "checkout" / "megatron" / "training" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        (self.folder / "checkout" / "megatron" / "__init__.py").write_text("", encoding="utf-8")
        script, line = self.folder / "train.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers {} --hidden-size 1024 " \
            "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2 " \
            "--global-batch-size 64 --vocab-size 50304 --bf16{}\n"
        script.write_text(line.format(24, ""), encoding="utf-8")
        plain, words = self.run_import(str(script)), (str(script), "--run", "--checkout", str(self.folder / "checkout"))
        resolved = self.run_import(*words)
        self.assertEqual((plain.returncode, resolved.returncode), (0, 0), plain.stderr + resolved.stderr)
        before, after = json.loads(plain.stdout), json.loads(resolved.stdout)
        self.assertEqual((before["plan"]["tp"], after["plan"]["tp"]), (1, 2))
        self.assertEqual((before["model"]["hidden_dropout"], after["model"]["hidden_dropout"]), (0.1, 0))
        self.assertNotIn("activation_kernel", after.get("parts", {}))
        script.write_text(line.format(23, ""), encoding="utf-8")
        self.assertIn("an odd number of layers", self.run_import(*words).stderr)
        script.write_text(line.format(24, " --no-such-option"), encoding="utf-8")
        self.assertIn("--no-such-option", self.run_import(*words).stderr)

    OLMO = {"src/olmo_core/script_utils.py": """
import argparse


def _parse_args(parser=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("run_name")
    parser.add_argument("--save-folder")
    parser.add_argument("--tokens", type=int)
    return parser.parse_known_args()
""", "src/scripts/train.py": """
from olmo_core.script_utils import main


def build(opts, _overrides):
    attention = {"_target_": "x.AttentionConfig", "n_heads": 16, "bias": False}
    block = {"_target_": "x.Block", "name": "default", "sequence_mixer": attention,
             "layer_norm": {"_target_": "x.Norm", "name": "rms"}, "feed_forward": {"_target_": "x.Mlp", "hidden_size": 4096}}
    return {"model": {"_target_": "x.Model", "d_model": 1024, "vocab_size": 50304, "n_layers": 4, "block": block},
            "train_module": {"_target_": "x.Module", "rank_microbatch_size": opts.tokens, "max_sequence_length": 1024,
                             "optim": {"_target_": "x.AdamWConfig"},
                             "dp_config": {"_target_": "x.Data", "name": "fsdp", "param_dtype": "bfloat16"}},
            "data_loader": {"_target_": "x.Loader", "global_batch_size": 1 << 18}}


if __name__ == "__main__":
    main(build)
"""}

    def test_a_launch_script_leads_to_the_recipe_that_it_starts(self):
        for name, text in self.OLMO.items():
            path = self.folder / "checkout" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        launch = self.folder / "launch" / "train.sh"
        launch.parent.mkdir()
        launch.write_text('torchrun --nproc-per-node=8 "$OLMO/src/scripts/train.py" run --tokens=$((4 * 1024)) "$@"\n',
                          encoding="utf-8")
        self.assertIn("add --run --checkout DIR", self.run_import(str(launch)).stderr)
        self.assertIn("does not exist near the script or in a checkout", self.run_import(str(launch), "--run").stderr)
        run = self.run_import(str(launch), "--run", "--checkout", str(self.folder / "checkout"))
        self.assertEqual(run.returncode, 0, run.stderr)
        plan = json.loads(run.stdout)["plan"]
        self.assertEqual((plan["dp"], plan["micro_batch"], plan["global_batch"], plan["zero"]), (8, 4, 256, 3))
        program = str(self.folder / "checkout" / "src" / "scripts" / "train.py")
        self.assertIn("arguments are required: run_name", self.run_import(program, "--run", "--gpus", "8").stderr)
        same = self.run_import(program, "--run", "--gpus", "8", "--set", "@=run --tokens=4096")
        self.assertEqual(json.loads(same.stdout)["plan"], plan)


unittest.main()
