#!/usr/bin/env python3
"""Compares PyTorch with tpsim's benchmarks, on the same GPU in the same session.

Usage: gpu_against_torch.py KERNELS STEPS_1B7 [STEPS_7B1]
       gpu_against_torch.py --attention TABLE

KERNELS is the output of tpsim_bench_gpu, TABLE its output with --attention. STEPS_* is the output
of `tpsim run --model bloom-1b7` (or bloom-7b1). Prints one line per comparison: the time of tpsim,
the time of PyTorch, and the speedup of tpsim. Weights and data are random, in bf16. Times are
medians of CUDA events after warm-up.
"""

import gc
import math
import re
import sys

import torch
import torch.nn.attention
import torch.nn.functional as F

HIDDEN, TP, HEADS, HEAD_DIM, TOKENS = 14336, 4, 28, 128, 2048


# PyTorch's attention backends, which are timed separately.
BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION")


def seconds_of(work, runs=10, warm_up=3):
    for _ in range(warm_up):
        work()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) * 1e-3 for a, b in zip(events, events[1:])]
    return sorted(times)[runs // 2]


def alibi(heads, seq, device="cuda"):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)], device=device)
    return (slopes[:, None, None] * torch.arange(seq, device=device)).to(torch.bfloat16)


class Block(torch.nn.Module):
    """One rank's share of a BLOOM block at tensor parallelism `tp`, without the all-reduces."""

    def __init__(self, hidden, heads, tp):
        super().__init__()
        self.heads = heads // tp
        self.head_dim = hidden // heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv = torch.nn.Linear(hidden, 3 * hidden // tp)
        self.out = torch.nn.Linear(hidden // tp, hidden)
        self.up = torch.nn.Linear(hidden, 4 * hidden // tp)
        self.down = torch.nn.Linear(4 * hidden // tp, hidden)

    def forward(self, x, bias, mask):
        batch, seq, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, seq, self.heads, 3, self.head_dim)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(3))
        if bias is None:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim) + bias
            scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
            context = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v
        x = x + self.out(context.transpose(1, 2).reshape(batch, seq, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def block_seconds(compiled):
    block = Block(HIDDEN, 112, TP).to("cuda", torch.bfloat16)
    bias = alibi(HEADS, TOKENS)
    mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool, device="cuda").triu(1)
    call = torch.compile(block) if compiled else block
    x = torch.randn(1, TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    dy = torch.randn(1, TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16)

    def once():
        # Gradients are overwritten instead of accumulated. Both have the same cost in tpsim's
        # GEMMs.
        block.zero_grad(set_to_none=True)
        x.grad = None
        call(x, bias, mask).backward(dy)

    return seconds_of(once)


class Bloom(torch.nn.Module):
    def __init__(self, hidden, layers, heads, vocab):
        super().__init__()
        self.table = torch.nn.Embedding(vocab, hidden)
        self.first, self.last = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.blocks = torch.nn.ModuleList(Block(hidden, heads, 1) for _ in range(layers))

    def forward(self, tokens, labels, bias, mask):
        x = self.first(self.table(tokens))
        for block in self.blocks:
            x = block(x, bias, mask)
        logits = F.linear(self.last(x), self.table.weight)
        # The kernel computes in fp32 without an fp32 copy of the logits, as in tpsim.
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


# hidden, layers, heads, micro-batch
BLOOMS = {"1b7": (2048, 24, 16, 4), "7b1": (4096, 30, 32, 1)}


def bloom_seconds(name, compiled, seq=2048):
    """Times a training step in bf16 with gradient clipping and flash attention (without ALiBi).
    As in tpsim, AdamW keeps fp32 weights and moments and reads fp32 gradients, and the bf16
    weights are cast from the fp32 weights."""
    hidden, layers, heads, batch = BLOOMS[name]
    model = Bloom(hidden, layers, heads, 250880).to("cuda", torch.bfloat16)
    call = torch.compile(model) if compiled else model
    narrow = list(model.parameters())
    masters = [p.detach().float().requires_grad_() for p in narrow]
    for master in masters:
        master.grad = torch.zeros_like(master)
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True)
    tokens = torch.randint(0, 250880, (batch, seq + 1), device="cuda")

    def step():
        call(tokens[:, :-1], tokens[:, 1:], None, None).backward()
        torch._foreach_copy_([m.grad for m in masters], [p.grad for p in narrow])
        model.zero_grad(set_to_none=True)
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(narrow, masters)

    return seconds_of(step, runs=6)


def attention_seconds(seq, backward, backend, **sizes):
    with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
        return seconds_of_attention(seq, backward, **sizes)


def seconds_of_attention(seq, backward, batch=1, heads=HEADS, kv_heads=HEADS, head_dim=HEAD_DIM):
    q, k, v = (
        torch.randn(batch, n, seq, head_dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for n in (heads, kv_heads, kv_heads)
    )
    grouped = {} if heads == kv_heads else {"enable_gqa": True}

    def attention():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, **grouped)

    if not backward:
        with torch.no_grad():
            return seconds_of(attention)
    o = attention()
    d_o = torch.randn_like(o)
    return seconds_of(lambda: torch.autograd.grad(o, (q, k, v), d_o, retain_graph=True))


def kernel_seconds(path):
    rows = {}
    for line in open(path):
        cells = line.rstrip("\n").split("\t")
        if len(cells) >= 2 and re.fullmatch(r"[0-9.]+", cells[1]):
            rows[cells[0]] = float(cells[1]) * 1e-6
    return rows


def find(rows, *parts):
    for name, seconds in rows.items():
        if all(part in name for part in parts):
            return seconds
    return math.nan


def step_seconds(path):
    """Returns the time of the last step that `tpsim run` printed: '1.23 s' or '850 ms', after
    step, loss and norm."""
    scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
    found = math.nan
    for line in open(path):
        match = re.match(r"\s*\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+) (s|ms|us)\b", line)
        if match:
            found = float(match[1]) * scale[match[2]]
    return found


def compare(name, ours, theirs):
    print(f"{name:58} tpsim {ours * 1e3:9.3f} ms  torch {theirs * 1e3:9.3f} ms  {theirs / ours:5.2f}x",
          flush=True)


def attempt(name, ours, measure):
    """Runs a comparison. If it fails (out of memory, no compiler), the error is printed and
    others can run."""
    try:
        compare(name, ours, measure())
    except Exception as error:  # whatever PyTorch raises
        print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    torch._dynamo.reset()  # a compiled model keeps its weights allocated
    gc.collect()
    torch.cuda.empty_cache()


def compare_attention(path):
    """Compares every line of tpsim's table with PyTorch's backends. Each shape is timed once per
    backend."""
    rows = [line.rstrip("\n").split("\t") for line in open(path)][1:]
    theirs = {}
    for kind, *numbers, way, microseconds, _ in rows:
        batch, seq, heads, kv_heads, head_dim = map(int, numbers)
        for backend in BACKENDS:
            name = f"{kind} {batch}x{seq} heads {heads}/{kv_heads}x{head_dim}, {way}, {backend}"
            asked = (kind, *numbers, backend)

            def measure():
                if asked not in theirs:
                    theirs[asked] = attention_seconds(
                        seq, kind == "flash_backward", backend, batch=batch, heads=heads,
                        kv_heads=kv_heads, head_dim=head_dim)
                return theirs[asked]

            attempt(name, float(microseconds) * 1e-6, measure)


def main():
    if sys.argv[1] == "--attention":
        print(torch.__version__, torch.cuda.get_device_name())
        compare_attention(sys.argv[2])
        return
    kernels = kernel_seconds(sys.argv[1])
    steps = dict(zip(BLOOMS, map(step_seconds, sys.argv[2:])))
    print(torch.__version__, torch.cuda.get_device_name())
    for seq in (2048, 8192):
        for kind, backward in (("forward", False), ("backward", True)):
            ours = find(kernels, f"flash_{kind}", f"x{seq}x", "variant 0")
            for backend in BACKENDS:
                attempt(f"flash {kind} causal, 1x{HEADS}x{seq}x{HEAD_DIM}, {backend}", ours,
                        lambda: attention_seconds(seq, backward, backend))
    block = find(kernels, "sum of the block's ops")
    for compiled in (False, True):
        how = "compiled" if compiled else "eager"
        attempt(f"BLOOM-176B block at TP4, forward + backward, {how}", block,
                lambda: block_seconds(compiled))
        for name, ours in steps.items():
            attempt(f"BLOOM-{name} step, {BLOOMS[name][3]} x 2048 tokens, {how}", ours,
                    lambda: bloom_seconds(name, compiled))


if __name__ == "__main__":
    main()
