"""LLaMA in bf16 on one GPU with the fused AdamW."""
import torch
from transformers import AutoConfig, AutoModelForCausalLM

config = AutoConfig.for_model("llama", hidden_size=512, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
                              intermediate_size=1024, vocab_size=32000, use_cache=False)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
torch.set_default_dtype(torch.float32)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for _ in range(2):
    tokens = torch.randint(0, 32000, (2, 256), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
