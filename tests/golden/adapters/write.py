#!/usr/bin/env python3
"""Writes golden values of LoRA, computed by peft and PyTorch autograd in float64.

    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers peft
    venv/bin/python tests/golden/adapters/write.py

Each case has a folder with adapter_model.safetensors (start values, under the names that the
reference model has), expected.json (settings, losses and gradient norms of 12 steps of AdamW) and
gradients.safetensors (of the first step). Base weights and tokens are those of the model's own case
in tests/golden. B starts at random values, so that gradients of A are not zero.
"""
import json
import pathlib

import peft
import safetensors.torch
import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "llama-all": ("llama-tiny", {"r": 4, "lora_alpha": 8, "target_modules": [
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}, "all-linear"),
    "llama-qv": ("llama-tiny", {"r": 3, "lora_alpha": 5, "use_rslora": True,
                                "target_modules": ["q_proj", "v_proj"]}, "q_proj,v_proj"),
    "bloom-all": ("bloom-tiny", {"r": 2, "lora_alpha": 4, "target_modules": [
        "query_key_value", "self_attention.dense", "dense_h_to_4h", "dense_4h_to_h"]}, "all-linear"),
}
RATE, BETAS, EPSILON, DECAY, CLIP, STEPS = 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0, 12


def short_name(name):
    """Returns the name in tpsim's checkpoints."""
    name = name.replace("base_model.model.", "").replace(".default.", ".")
    return name.removeprefix("transformer.")


def model_of(base, settings):
    config = transformers.AutoConfig.from_pretrained(GOLDEN / base)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").double()
    weights = safetensors.torch.load_file(GOLDEN / base / "model.safetensors")
    missing, unexpected = model.load_state_dict({k: v.double() for k, v in weights.items()}, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings)).double()
    generator = torch.Generator().manual_seed(5)
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            start = 0.05 * torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            parameter.data = start.double()
    return adapted


def loss_of(model, tokens):
    logits = model(input_ids=tokens[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def write(name, base, settings, targets):
    folder = GOLDEN / "adapters" / name
    folder.mkdir(exist_ok=True)
    model = model_of(base, settings)
    trained = {short_name(key): p for key, p in model.named_parameters() if p.requires_grad}
    stored = {key: p.detach().float().contiguous() for key, p in trained.items()}
    safetensors.torch.save_file(stored, folder / "adapter_model.safetensors")
    tokens = safetensors.torch.load_file(GOLDEN / base / "tokens.safetensors")["tokens"]
    optimizer = torch.optim.AdamW(trained.values(), lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, tokens[step])
        loss.backward()
        if step == 0:
            gradients = {key: p.grad.float().contiguous() for key, p in trained.items()}
            safetensors.torch.save_file(gradients, folder / "gradients.safetensors")
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(trained.values(), CLIP).item())
        optimizer.step()
    values = {"base": base, "rank": settings["r"], "alpha": settings["lora_alpha"], "targets": targets,
              "scaling": "rslora" if settings.get("use_rslora") else "plain", "loss": losses,
              "grad_norm_before_clip": norms,
              "trained": sum(p.numel() for p in trained.values()),
              "versions": {m.__name__: m.__version__ for m in (torch, transformers, peft)}}
    (folder / "expected.json").write_text(json.dumps(values, indent=1) + "\n")
    print(name, losses[0], losses[-1], norms[0], values["trained"])


if __name__ == "__main__":
    for case, (base_name, lora, words) in CASES.items():
        write(case, base_name, lora, words)
