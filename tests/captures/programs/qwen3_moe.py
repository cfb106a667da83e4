"""Qwen3's mixture of experts under autocast, with clipped gradients."""
import torch
from transformers import AutoConfig, AutoModelForCausalLM

config = AutoConfig.for_model("qwen3_moe", hidden_size=512, num_hidden_layers=2, num_attention_heads=8,
                              num_key_value_heads=4, intermediate_size=1024, moe_intermediate_size=256, num_experts=16,
                              num_experts_per_tok=4, vocab_size=32000, use_cache=False)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
torch.set_default_dtype(torch.float32)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(2):
    tokens = torch.randint(0, 32000, (2, 256), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
