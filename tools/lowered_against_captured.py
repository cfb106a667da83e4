#!/usr/bin/env python3
"""Compares lowered programs of the stacks pytorch and pytorch-fsdp with captured steps of transformers.

Usage: lowered_against_captured.py [--program build/release/tpsim] [--only SUBSTRING] [--steps FOLDER]

Each model has 4 layers. It is captured in bf16 on one GPU, under autocast with DistributedDataParallel on 8, and with
FSDP 2 and mixed precision on 8 (needs PyTorch and transformers, no GPU). A row has the launches of forward and
backward, the FLOPs of GEMMs and attention, the milliseconds of GEMMs and of all ops of forward and backward, the GiB of tensors
at the peak, and the MiB of collectives. Each cell is the lowered number and its difference in percent.
"""
import argparse
import json

from capture_validation import capture, parse, predict, run

DENSE = dict(hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4, head_dim=64,
             intermediate_size=2816, vocab_size=32000, max_position_embeddings=2048, use_cache=False)
MODELS = {
    "llama": DENSE, "qwen3": DENSE, "gemma2": DENSE | {"query_pre_attn_scalar": 64},
    "gpt2": dict(n_embd=1024, n_layer=4, n_head=16, n_positions=2048, vocab_size=32000, use_cache=False, attn_pdrop=0.0,
                 embd_pdrop=0.0, resid_pdrop=0.0),
    "mixtral": DENSE | dict(num_local_experts=8, num_experts_per_tok=2, sliding_window=None),
    "qwen3_moe": DENSE | dict(num_experts=16, num_experts_per_tok=4, moe_intermediate_size=704),
}
LAYOUTS = {
    "one": (1, "--stack pytorch --master-weights none --optimizer-dtype bf16 --gradient-dtype bf16"),
    "ddp": (8, "--stack pytorch --master-weights autocast"),
    "fsdp": (8, "--stack pytorch-fsdp --zero 3 --attention-kernel best --optimizer-kernel fused"),
}
SCRIPT = """
import sys, torch, torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import AutoConfig, AutoModelForCausalLM
config, layout = AutoConfig.from_pretrained(sys.argv[1]), sys.argv[2]
torch.set_default_dtype(torch.bfloat16 if layout == "one" else torch.float32)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager" if "gemma" in config.model_type else "sdpa")
torch.set_default_dtype(torch.float32)
model.train()
if layout != "one":
    dist.init_process_group("nccl")
if layout == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
if layout == "fsdp":
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    decoder = model.get_decoder()
    for layer in decoder.layers if hasattr(decoder, "layers") else decoder.h:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for _ in range(2):
    ids = torch.randint(0, 32000, (2, 1024), device="cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled=layout == "ddp"):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MEMORY = ("weights", "gradients", "optimizer", "activations")


def captured(program, folder, model, layout):
    path = capture(folder / f"{model}_{layout}.json", LAYOUTS[layout][0], folder / "train.py",
                   folder / f"{model}.config.json", layout)
    step = json.loads(path.read_text())
    report = predict(program, path, "dgx-h100")
    times = {row["what"]: 1e3 * row["seconds"] for row in report["ops"]}
    counts = [event[0] == "kernel" and event[2] != "optimizer" for event in step["events"]]
    moved = sum(event[6] for event in step["events"] if event[0] == "collective")
    return {"launches": sum(counts), "TFLOP": report["matrix_flops"] / 1e12, "GEMM ms": times["GEMMs"],
            "ops ms": sum(time for what, time in times.items() if what != "optimizer"),
            "GiB": sum(report["memory"][kind] for kind in MEMORY), "moved MiB": moved / 2**20}


def lowered(program, folder, model, layout):
    world, options = LAYOUTS[layout]
    if model == "gemma2":
        options += " --attention unfused"
    report = json.loads(run(program, "explain", "--program", "--json", "--model", folder / f"{model}.config.json", "--cluster",
                            "dgx-h100", "--tp", 1, "--pp", 1, "--dp", world, "--micro-batch", 2, "--global-batch",
                            2 * world, "--seq", 1024, *options.split()))
    launches = flops = moved = 0
    tied = json.loads((folder / f"{model}.config.json").read_text())["tie_word_embeddings"]
    for part in report["programs"]:
        for phase in part["phases"]:
            for event in phase["events"]:
                times = part["count"]
                if part["part"] == "word_embeddings" and not tied:
                    times = 2  # the table of the head is not listed
                if "collective" in event:
                    moved += times * event["bytes"] * event.get("calls", 1)
                elif phase["phase"] in ("forward", "backward") and "op" in event:
                    if "accumulate" in event["label"] or "zero_gradient" in event["label"]:
                        continue  # of later micro-batches
                    launches += times * event.get("kernels", 1)
                    if "matmul" in event["op"] or "flash" in event["op"]:
                        flops += times * event["flops"]
    predicted = report["plan"]["predicted"]
    terms = {name: 1e3 * seconds for name, seconds in predicted["breakdown_s"].items()}
    memory = predicted["memory_gib"]["by_stage"][0]
    return {"launches": launches, "TFLOP": flops / 1e12, "GEMM ms": terms["matmul"] + terms["grouped_products"],
            "ops ms": sum(terms[name] for name in ("matmul", "grouped_products", "attention", "elementwise", "permutation")),
            "GiB": sum(memory[kind] for kind in MEMORY), "moved MiB": moved / 2**20}


def main():
    asked, folder = parse(argparse.ArgumentParser())
    (folder / "train.py").write_text(SCRIPT)
    from transformers import AutoConfig
    heading = None
    for model, fields in MODELS.items():
        (folder / f"{model}.config.json").write_text(AutoConfig.for_model(model, **fields).to_json_string(use_diff=False))
        for layout in LAYOUTS:
            if asked.only not in f"{model}_{layout}":
                continue
            try:
                real, ours = captured(asked.program, folder, model, layout), lowered(asked.program, folder, model, layout)
            except RuntimeError as error:
                print(f"| {model} | {layout} | {error} |", flush=True)
                continue
            if heading is None:
                heading = f"| model | layout | {' | '.join(real)} |"
                print(heading + "\n|" + "---|" * (2 + len(real)))
            cells = [f"{ours[key]:.4g} ({100 * (ours[key] / real[key] - 1):+.0f} %)" if real[key] else f"{ours[key]:.4g}" for key in real]
            print(f"| {model} | {layout} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
