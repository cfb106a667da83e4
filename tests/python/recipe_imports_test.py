"""tpsim import reads the settings of recipes. Run by ctest with TPSIM_PROGRAM set."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest


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

    def test_a_script_that_trains_adapters_is_refused_by_name(self):
        for code in ("from unsloth import FastLanguageModel\n"
                     "model, words = FastLanguageModel.from_pretrained(model_name='m', load_in_4bit=True)\n"
                     "model = FastLanguageModel.get_peft_model(model, r=16)\n",
                     "from peft import LoraConfig, get_peft_model\nmodel = get_peft_model(None, LoraConfig(r=8))\n"):
            file = self.folder / "adapters.py"
            file.write_text(code, encoding="utf-8")
            self.assertIn("trains adapters, which are not modelled", self.run_import(str(file), "--run").stderr)

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
