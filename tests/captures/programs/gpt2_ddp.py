"""GPT-2 under autocast with DistributedDataParallel, built on the CPU."""
import torch
import torch.distributed as dist
from transformers import AutoConfig, AutoModelForCausalLM

dist.init_process_group("nccl")
config = AutoConfig.for_model("gpt2", n_embd=256, n_layer=2, n_head=4, use_cache=False)
model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").cuda().train()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(2):
    tokens = torch.randint(0, 32000, (2, 256)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
