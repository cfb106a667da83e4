"""tpsim_recipes runs recipes under stubs, and limits
their actions. Argument: the folder with the package."""
import ast
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
        body = ("import pathlib, shutil, tempfile\nopen('x', 'w').write('y')\nos.makedirs('a/b')\nos.rename('x', 'a/z')\n"
                "with tempfile.TemporaryDirectory() as own:\n    pathlib.Path(own, 'c').write_text('d')\n"
                "shutil.rmtree('a/b')\nvalue = (os.getcwd(), os.listdir('.'), os.listdir('a'))")
        place, *listed = ast.literal_eval(self.value_of(body)[0])
        self.assertEqual(listed, [["a"], ["z"]])
        self.assertFalse(os.path.exists(place))
        self.assertEqual(self.value_of("value = os.listdir('.')")[0], "[]")

    def test_files_outside_are_changed_by_no_way(self):
        kept = self.folder / "own" / "kept"
        self.run_recipe("")
        kept.write_text("kept", encoding="utf-8")
        before = kept.stat()
        place, folder = repr(str(kept)), repr(str(kept.parent))
        for body in (f"os.truncate({place}, 0)", f"os.chmod({place}, 0)", f"os.utime({place}, (0, 0))", f"os.rename({place}, 'x')",
                     f"os.link({place}, 'x')\nopen('x', 'w').write('y')", f"os.symlink({place}, 'x')\nopen('x', 'w').write('y')",
                     f"os.remove('kept', dir_fd=os.open({folder}, 0))", f"open({place}, 'a').write('y')",
                     f"os.write(os.open('kept', os.O_RDWR, dir_fd=os.open({folder}, 0)), b'y')", f"os.chdir({folder})\nos.remove('kept')",
                     f"os.chmod(os.open({place}, 0), 0)", f"os.open({place}, os.O_TRUNC)", f"import shutil\nshutil.rmtree({folder})"):
            self.value_of("value = 1\n" + body)
            self.assertEqual(kept.read_text(encoding="utf-8"), "kept", body)
            self.assertEqual((kept.stat().st_mode, kept.stat().st_mtime), (before.st_mode, before.st_mtime), body)

    def test_forbidden_namespaces_are_reported(self):
        if os.environ.get("TPSIM_TEST_NAMESPACES") == "forbidden":
            self.assertFalse(self.is_isolated())


unittest.main()
