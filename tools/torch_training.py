#!/usr/bin/env python3
"""Measures training steps of Hugging Face models on one GPU, and writes them as a table of runs.

Usage: torch_training.py OUT.csv [--cases NAME] [--seconds N] [--only SUBSTRING]
                         [--saved OUT.tsv] [--kernels OUT.tsv] [--snapshots FOLDER]

Models have their published shapes, random weights and random tokens. A step is forward with the
model's own loss, backward, AdamW (fused) and zero_grad. Its time is the wall-clock time between two
synchronizations; the median over the steps after warm-up is written. Memory is the peak of
PyTorch's allocated bytes over one step. `tpsim validate --runs OUT.csv` compares the table with
predictions. --saved lists the tensors that forward saves for backward, by shape and dtype.
--kernels lists the number of launches and the time in microseconds of each kernel in a step.
--cases held-out measures other models, which no price of tpsim was derived from.
--cases sharded measures the memory of one rank of FSDP 2 on many GPUs: PyTorch's "fake" process
group allocates what collectives need and transfers nothing, so these rows have no step time.
--snapshots writes PyTorch's memory snapshot of a step for the cases of SNAPSHOT_CASES.
"""

import argparse
import collections
import csv
import gc
import gzip
import os
import statistics
import time
import warnings

import torch
import transformers
from torch_cases import ALL_CASES, KERNEL_CASES, MODELS, SNAPSHOT_CASES
from transformers import AutoConfig, AutoModelForCausalLM

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

COLUMNS = (
    "id source date cluster regime gpu gpus gpus_per_node model layers hidden heads kv_heads "
    "ffn_hidden gated_ffn seq vocab dtype framework tp sp cp pp vpp dp zero micro_batch global_batch "
    "recompute attention grad_accum_dtype stage_split step_s tokens_per_s_per_gpu hw_tflops_per_gpu "
    "mem_gb mem_kind outcome notes head_dim experts experts_per_token optimizer optimizer_dtype "
    "master_weights compile dropout gradient_sync").split()


def build(case):
    kind, fields = MODELS[case.model]
    config = AutoConfig.for_model(kind, **fields, attn_implementation=case.attention, use_cache=False)
    torch.set_default_dtype(torch.bfloat16 if case.precision == "bf16" else torch.float32)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=case.attention)
    torch.set_default_dtype(torch.float32)
    model.train()
    if case.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if case.shards > 1:
        shard(model, case)
    elif case.compiled:
        model.compile()
    return model


def shard(model, case):
    """Shards a model as rank 0 of FSDP 2. Each block is a unit; the rest is one."""
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=case.shards)
    mesh = dist.init_device_mesh("cuda", (case.shards,))
    policy = MixedPrecisionPolicy()
    if case.precision == "mixed":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    decoder = model.get_decoder()
    for block in decoder.layers if hasattr(decoder, "layers") else decoder.h:
        if case.compiled:
            block.compile()
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=case.reshard)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=case.reshard)
    torch.cuda.empty_cache()


class Saved:
    """Sums the bytes of the storages that autograd saves for backward, by shape and dtype."""

    def __init__(self, parameters):
        self.known = {p.untyped_storage().data_ptr() for p in parameters}
        self.bytes = collections.Counter()
        self.count = collections.Counter()

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if tensor.is_cuda and storage.data_ptr() not in self.known:
            self.known.add(storage.data_ptr())
            key = (str(tuple(tensor.shape)), str(tensor.dtype).removeprefix("torch."))
            self.bytes[key] += storage.nbytes()
            self.count[key] += 1
        return tensor.detach()  # saving an output itself would create a reference cycle


def measure(case, saved_file, snapshot):
    if snapshot:
        torch.cuda.memory._record_memory_history(max_entries=400_000, stacks="python")
    model = build(case)
    weights = torch.cuda.memory_allocated()
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    ids = torch.randint(0, model.config.vocab_size, (case.micro_batch, case.seq), device="cuda")

    def forward():
        with torch.autocast("cuda", torch.bfloat16, enabled=case.precision == "autocast"):
            return model(input_ids=ids, labels=ids).loss

    def step():
        for _ in range(case.accumulate):
            (forward() / case.accumulate).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot)
        torch.cuda.memory._record_memory_history(enabled=None)
        with open(snapshot, "rb") as raw, gzip.open(snapshot + ".gz", "wb", 6) as packed:
            packed.write(raw.read())
        os.remove(snapshot)
    times = []
    torch.cuda.reset_peak_memory_stats()
    while len(times) < 5 or (sum(times) < 2 and len(times) < 40):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    state = torch.cuda.memory_allocated()
    # Time to launch all kernels of a step, without waiting for their execution.
    begin = time.perf_counter()
    step()
    issued = time.perf_counter() - begin
    torch.cuda.synchronize()
    # Memory in bytes relative to the state between steps: kept by forward, then the peaks of
    # forward, backward and the optimizer.
    marks = []
    torch.cuda.reset_peak_memory_stats()
    loss = forward()
    marks += [torch.cuda.memory_allocated() - state, torch.cuda.max_memory_allocated() - state]
    torch.cuda.reset_peak_memory_stats()
    loss.backward()
    marks += [torch.cuda.max_memory_allocated() - state]
    torch.cuda.reset_peak_memory_stats()
    optimizer.step()
    marks += [torch.cuda.max_memory_allocated() - state]
    optimizer.zero_grad(set_to_none=True)
    del loss
    if saved_file and not case.compiled:
        saved = Saved(model.parameters())
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda t: t):
            loss = forward()
        for key, size in saved.bytes.most_common(40):
            print(case.name(), *key, saved.count[key], size, sep="\t", file=saved_file, flush=True)
        del loss
    return (statistics.median(times), max(times) / min(times), peak, reserved, parameters, weights, state, issued,
            marks)


def kernels(case):
    """Returns the kernels of one step by name, and their microseconds, as PyTorch's profiler has them."""
    model = build(case)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    ids = torch.randint(0, model.config.vocab_size, (case.micro_batch, case.seq), device="cuda")
    from torch.profiler import ProfilerActivity, profile
    for turn in range(2):
        with profile(activities=[ProfilerActivity.CUDA]) as record:
            with torch.autocast("cuda", torch.bfloat16, enabled=case.precision == "autocast"):
                model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
    by_name = collections.Counter()
    for event in record.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            by_name[event.name] += 1
    return by_name, {e.key: e.self_device_time_total for e in record.key_averages()}


def row_of(case, result, gpu, date):
    seconds, spread, peak, reserved, parameters, weights, state, issued, marks = result
    kind, f = MODELS[case.model]
    get = lambda *names: next((f[n] for n in names if n in f), "")
    layers, hidden = get("num_hidden_layers", "n_layer"), get("hidden_size", "n_embd")
    heads = get("num_attention_heads", "n_head")
    gated = kind not in ("gpt2", "bloom", "opt", "falcon")
    kv_heads = 1 if f.get("multi_query") else get("num_key_value_heads") or heads
    row = dict.fromkeys(COLUMNS, "")
    batch = case.micro_batch * case.accumulate
    row.update(
        id=case.name(), source="tools/torch_training.py", date=date, gpu=gpu, gpus=case.shards,
        gpus_per_node=min(case.shards, 8),
        model=case.model, layers=layers, hidden=hidden, heads=heads,
        kv_heads=kv_heads,
        ffn_hidden=get("moe_intermediate_size", "intermediate_size", "ffn_dim") or 4 * hidden,
        gated_ffn=int(gated), seq=case.seq, vocab=f["vocab_size"], dtype="bf16",
        framework=f"{'FSDP 2, ' * (case.shards > 1)}transformers {transformers.__version__}, "
                  f"PyTorch {torch.__version__.split('+')[0]}",
        tp=1, cp=1, pp=1, vpp=1, dp=case.shards, zero=(3 if case.reshard else 2) * (case.shards > 1),
        micro_batch=case.micro_batch, global_batch=batch * case.shards,
        recompute="full" if case.recompute else "none",
        attention="unfused" if case.attention == "eager" else "flash", outcome="ok",
        step_s=f"{seconds:.6f}", tokens_per_s_per_gpu=f"{batch * case.seq / seconds:.1f}",
        mem_gb=f"{peak / 2**30:.3f}", mem_kind="torch peak allocated, GiB", head_dim=get("head_dim"),
        experts=get("num_experts", "n_routed_experts"), experts_per_token=get("num_experts_per_tok"), optimizer="adamw",
        optimizer_dtype="bf16" if case.precision == "bf16" else "fp32",
        master_weights={"bf16": "none", "autocast": "autocast", "mixed": ""}[case.precision],
        compile=int(case.compiled), dropout=0,
        gradient_sync="every_micro_batch" if case.shards > 1 else "",  # FSDP 2 outside of no_sync()
        notes=f"{parameters} parameters; slowest/fastest {spread:.3f}; issued in {issued * 1e3:.1f} ms; GiB "
              f"reserved {reserved / 2**30:.3f}, weights {weights / 2**30:.3f}, between steps {state / 2**30:.3f}, kept by "
              f"forward {marks[0] / 2**30:.3f}, peaks of forward {marks[1] / 2**30:.3f} backward "
              f"{marks[2] / 2**30:.3f} optimizer {marks[3] / 2**30:.3f}")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out")
    parser.add_argument("--cases", choices=sorted(ALL_CASES), default="first")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", default="")
    parser.add_argument("--saved")
    parser.add_argument("--kernels")
    parser.add_argument("--snapshots")
    args = parser.parse_args()
    gpu, date = torch.cuda.get_device_name(), time.strftime("%Y-%m-%d")
    began = time.monotonic()
    saved_file = open(args.saved, "w") if args.saved else None
    cases = [c for c in ALL_CASES[args.cases] if args.only in c.name()]
    if args.kernels:
        with open(args.kernels, "w") as out:
            for case in (case for i, case in enumerate(cases) if i in KERNEL_CASES[args.cases]):
                try:
                    counts, times = kernels(case)
                    print(case.name(), "all", sum(counts.values()), "", sep="\t", file=out, flush=True)
                    for name, n in counts.most_common(40):
                        print(case.name(), name[:120], n, f"{times.get(name, 0):.0f}", sep="\t", file=out, flush=True)
                except Exception as error:  # the profiler is optional
                    print(case.name(), repr(error)[:200], file=out, flush=True)
                gc.collect()
                torch.cuda.empty_cache()
    with open(args.out, "w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        for index, case in enumerate(cases):
            if time.monotonic() - began > args.seconds:
                print("left out:", case.name(), flush=True)
                continue
            begin = time.monotonic()
            try:
                snapshot = args.snapshots and index in SNAPSHOT_CASES[args.cases]
                path = os.path.join(args.snapshots, case.name() + ".pickle") if snapshot else ""
                row = row_of(case, measure(case, saved_file, path), gpu, date)
                if case.shards > 1:
                    row.update(step_s="", tokens_per_s_per_gpu="")
            except torch.OutOfMemoryError:
                row = row_of(case, (1, 1, 0, 0, 0, 0, 0, 0, [0] * 4), gpu, date)
                row.update(outcome="oom", step_s="", tokens_per_s_per_gpu="", mem_gb="", mem_kind="", notes="")
            except Exception as error:
                print("failed:", case.name(), repr(error)[:300], flush=True)
                gc.collect()
                torch.cuda.empty_cache()
                continue
            writer.writerow(row)
            out.flush()
            print(f"{case.name()}: {row['step_s']} s, {row['mem_gb']} GiB, {row['notes']} "
                  f"[{time.monotonic() - begin:.0f} s]", flush=True)
            gc.collect()
            torch.cuda.empty_cache()
            torch._dynamo.reset()


if __name__ == "__main__":
    main()
