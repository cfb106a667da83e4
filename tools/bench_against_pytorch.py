"""The PyTorch side of tools/bench_against_pytorch.sh: a BLOOM-like model written to be fast.

prepare DIR   writes the model and the tokens that both programs train on
train DIR     trains the model like `tpsim run`; prints a JSON list of {"loss", "step_s"}
compare DIR   checks that both programs have the same losses; prints the ratio of their step times
kernels FILE  prints the GEMM kernels of the program tpsim and of PyTorch
"""

import argparse
import ctypes
import glob
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

WARM_UP = 2  # first steps of each round, which are not timed
NAMES = {  # per block: Hugging Face's weight name -> shape in units of hidden
    "input_layernorm": (1,),
    "self_attention.query_key_value": (3, 1),
    "self_attention.dense": (1, 1),
    "post_attention_layernorm": (1,),
    "mlp.dense_h_to_4h": (4, 1),
    "mlp.dense_4h_to_h": (1, 4),
}


def write_safetensors(path, arrays, dtype):
    """Writes a safetensors file. `arrays`: name -> (shape, bytes)."""
    header, at = {}, 0
    for name, (shape, data) in arrays.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, data in arrays.values():
            file.write(data)


def read_safetensors(path):
    kinds = {"F32": torch.float32, "I64": torch.int64}
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(raw[8 + size + begin : 8 + size + end], dtype=kinds[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def initial_weights(shape):
    torch.manual_seed(1)
    hidden = shape.hidden

    def value(name, dims):
        if "layernorm" in name or name.startswith("ln_f"):
            return torch.ones(dims) if name.endswith("weight") else torch.zeros(dims)
        return torch.zeros(dims) if name.endswith("bias") else 0.02 * torch.randn(dims)

    dims = {"word_embeddings.weight": (shape.vocab, hidden)}
    for norm in ("word_embeddings_layernorm", "ln_f"):
        dims[norm + ".weight"] = dims[norm + ".bias"] = (hidden,)
    for layer in range(shape.layers):
        for name, units in NAMES.items():
            dims[f"h.{layer}.{name}.weight"] = tuple(unit * hidden for unit in units)
            dims[f"h.{layer}.{name}.bias"] = (units[0] * hidden,)
    return {name: value(name, d) for name, d in dims.items()}


def prepare(shape):
    os.makedirs(shape.folder, exist_ok=True)
    config = {"architectures": ["BloomForCausalLM"], "model_type": "bloom",
              "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
              "apply_residual_connection_post_layernorm": False, "hidden_dropout": 0.0,
              "attention_dropout": 0.0, "hidden_size": shape.hidden, "n_head": shape.heads,
              "n_layer": shape.layers, "vocab_size": shape.vocab}
    with open(f"{shape.folder}/config.json", "w") as file:
        json.dump(config, file)
    weights = initial_weights(shape)
    write_safetensors(f"{shape.folder}/model.safetensors",
                      {name: (w.shape, w.numpy().tobytes()) for name, w in weights.items()}, "F32")
    tokens = torch.randint(0, shape.vocab, (shape.steps, shape.batch, shape.seq + 1))
    write_safetensors(f"{shape.folder}/tokens.safetensors",
                      {"tokens": (tokens.shape, tokens.numpy().tobytes())}, "I64")


def attention_bias(shape):
    """Returns ALiBi and the causal mask as one additive tensor, which is computed once."""
    power = 2 ** math.floor(math.log2(shape.heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-4 * (2 * i + 1) / power) for i in range(shape.heads - power)]
    bias = torch.tensor(slopes)[:, None, None] * torch.arange(shape.seq)[None, None, :]
    mask = torch.full((shape.seq, shape.seq), float("-inf")).triu(1)
    return (bias + mask).repeat(shape.micro_batch, 1, 1)


def loss_of(w, tokens, bias, shape):
    """Returns the mean loss of a micro-batch, computed with PyTorch's fused ops."""
    b, s, hidden, heads = shape.micro_batch, shape.seq, shape.hidden, shape.heads
    width = hidden // heads
    has_fused_attention = hasattr(F, "scaled_dot_product_attention")

    def norm(x, name):
        return F.layer_norm(x, (hidden,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    def attention(x, name):
        qkv = linear(x, name + ".query_key_value").view(b, s, heads, 3, width)
        q, k, v = (qkv[:, :, :, i].transpose(1, 2) for i in range(3))
        if has_fused_attention:
            context = F.scaled_dot_product_attention(q, k, v, bias.view(b, heads, s, s))
            return linear(context.transpose(1, 2).reshape(b, s, hidden), name + ".dense")
        q, k, v = (t.reshape(b * heads, s, width) for t in (q, k, v))
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=width**-0.5)
        context = torch.bmm(F.softmax(scores, -1), v).view(b, heads, s, width)
        return linear(context.transpose(1, 2).reshape(b, s, hidden), name + ".dense")

    x = F.embedding(tokens[:, :-1], w["word_embeddings.weight"])
    x = norm(x, "word_embeddings_layernorm")
    for layer in range(shape.layers):
        h = f"h.{layer}."
        x = x + attention(norm(x, h + "input_layernorm"), h + "self_attention")
        y = linear(norm(x, h + "post_attention_layernorm"), h + "mlp.dense_h_to_4h")
        x = x + linear(F.gelu(y, approximate="tanh"), h + "mlp.dense_4h_to_h")
    logits = F.linear(norm(x, "ln_f"), w["word_embeddings.weight"])
    return F.cross_entropy(logits.view(-1, shape.vocab), tokens[:, 1:].reshape(-1))


def clip(gradients):
    """Clips all gradients with multi-tensor ops; Debian's clip_grad_norm_ processes them one by
    one."""
    total = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if (scale := 1.0 / (float(total) + 1e-6)) < 1:
        torch._foreach_mul_(gradients, scale)


def train(shape):
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    weights = {name: t.requires_grad_() for name, t in
               read_safetensors(f"{shape.folder}/model.safetensors").items()}
    tokens = read_safetensors(f"{shape.folder}/tokens.safetensors")["tokens"]
    groups = [{"params": [p for p in weights.values() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in weights.values() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, foreach=True)
    bias = attention_bias(shape)
    parts = shape.batch // shape.micro_batch
    report = []
    for step in range(shape.steps):
        start = time.perf_counter()
        loss = 0.0
        for part in tokens[step].chunk(parts):
            part_loss = loss_of(weights, part, bias, shape) / parts
            part_loss.backward()
            loss += float(part_loss.detach())
        clip([p.grad for p in weights.values()])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report.append({"loss": loss, "step_s": time.perf_counter() - start})
    print(json.dumps(report))


def counted(steps):
    return [step["step_s"] for step in steps[WARM_UP:]]


def compare(shape):
    ours = [json.load(open(path))["steps"] for path in sorted(glob.glob(f"{shape.folder}/tpsim-*"))]
    theirs = [json.load(open(path)) for path in sorted(glob.glob(f"{shape.folder}/torch-*"))]
    for a, b in zip(ours[0], theirs[0]):
        if abs(a["loss"] - b["loss"]) > 1e-4 * b["loss"]:
            sys.exit(f"the two do not train the same model: loss {a['loss']} and {b['loss']}")
    a = sum((counted(steps) for steps in ours), [])
    b = sum((counted(steps) for steps in theirs), [])
    print(f"hidden {shape.hidden}, {shape.layers} layers, seq {shape.seq}, vocabulary {shape.vocab}, "
          f"batch {shape.batch} in micro-batches of {shape.micro_batch}: "
          f"{len(ours)} rounds of {len(ours[0]) - WARM_UP} steps, same losses")
    for name, pick in (("min", min), ("median", statistics.median)):
        print(f"  {name:6}  tpsim {pick(a) * 1e3:8.2f} ms   PyTorch {pick(b) * 1e3:8.2f} ms   "
              f"ratio {pick(b) / pick(a):.2f}")
    by_round = [statistics.median(counted(y)) / statistics.median(counted(x))
                for x, y in zip(ours, theirs)]
    print(f"  ratio by round: {' '.join(f'{ratio:.2f}' for ratio in by_round)}")


# dnnl_cpu_isa_t of oneDNN
INSTRUCTION_SETS = {0x1: "SSE4.1", 0x3: "AVX", 0x7: "AVX2", 0xF: "AVX2 VNNI", 0x27: "AVX-512", 0x67: "AVX-512 VNNI",
                    0xE7: "AVX-512 BF16"}


def kernel_in(libraries):
    """Returns the kernels that the first known GEMM library among these paths selects on this processor."""
    for path in libraries:
        if "libdnnl" in path:
            isa = ctypes.CDLL(path).dnnl_get_effective_cpu_isa()
            return f"oneDNN, {INSTRUCTION_SETS.get(isa, f'instruction set {isa:#x}')}"
        if "libopenblas" in path:
            name = ctypes.CDLL(path).openblas_get_corename
            name.restype = ctypes.c_char_p
            return f"OpenBLAS, {name().decode()}"
    return ""


def kernels(shape):
    linked = subprocess.run(["ldd", shape.folder], capture_output=True, text=True, check=False).stdout
    print("GEMM of tpsim:  ", kernel_in([line.split()[2] for line in linked.splitlines() if " => /" in line]) or "Eigen")
    torch.ones(2, 2) @ torch.ones(2, 2)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        mapped = {line.split()[-1] for line in maps}
    mkl = [line.strip(" -") for line in torch.__config__.show().splitlines() if "Math Kernel Library" in line]
    capability = torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends, "cpu") else ""
    print(f"GEMM of PyTorch {torch.__version__}:",
          ", ".join([*mkl, capability]) if torch.backends.mkl.is_available() else kernel_in(sorted(mapped)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("prepare", "train", "compare", "kernels"))
    parser.add_argument("folder")
    for name in ("hidden", "layers", "heads", "seq", "vocab", "batch", "micro_batch", "steps"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int)
    shape = parser.parse_args()
    {"prepare": prepare, "train": train, "compare": compare, "kernels": kernels}[shape.what](shape)


if __name__ == "__main__":
    main()
