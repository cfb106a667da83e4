"""The models and cases that torch_training.py measures."""

# Published shapes: the model type of transformers and the fields of its configuration.
LLAMA_1B = dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                head_dim=64, intermediate_size=8192, vocab_size=128256, tie_word_embeddings=True,
                max_position_embeddings=131072)
QWEN3_1B7 = dict(hidden_size=2048, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
                 head_dim=128, intermediate_size=6144, vocab_size=151936, tie_word_embeddings=True,
                 max_position_embeddings=40960)
LLAMA_8B = dict(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                head_dim=128, intermediate_size=14336, vocab_size=128256, tie_word_embeddings=False,
                max_position_embeddings=131072)
GPT2_LARGE = dict(n_embd=1280, n_layer=36, n_head=20, n_positions=1024, vocab_size=50257,
                  embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
BLOOM_1B1 = dict(hidden_size=1536, n_layer=24, n_head=16, vocab_size=250880)
OLMOE = dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=16,
             intermediate_size=1024, vocab_size=50304, num_experts=64, num_experts_per_tok=8,
             max_position_embeddings=4096)
LLAMA_2_7B = dict(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
                  intermediate_size=11008, vocab_size=32000, tie_word_embeddings=False,
                  max_position_embeddings=4096)
LLAMA_3B = dict(hidden_size=3072, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8,
                head_dim=128, intermediate_size=8192, vocab_size=128256, tie_word_embeddings=True,
                max_position_embeddings=131072)
QWEN25_1B5 = dict(hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
                  intermediate_size=8960, vocab_size=151936, tie_word_embeddings=True,
                  max_position_embeddings=131072)
QWEN3_4B = dict(hidden_size=2560, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
                head_dim=128, intermediate_size=9728, vocab_size=151936, tie_word_embeddings=True,
                max_position_embeddings=40960)
GEMMA2_2B = dict(hidden_size=2304, num_hidden_layers=26, num_attention_heads=8, num_key_value_heads=4,
                 head_dim=256, intermediate_size=9216, vocab_size=256000, query_pre_attn_scalar=256)
PHI3_MINI = dict(hidden_size=3072, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
                 intermediate_size=8192, vocab_size=32064, max_position_embeddings=4096)
OPT_1B3 = dict(hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, ffn_dim=8192,
               word_embed_proj_dim=2048, vocab_size=50272, dropout=0.0)
FALCON_7B = dict(hidden_size=4544, num_hidden_layers=32, num_attention_heads=71, multi_query=True,
                 parallel_attn=True, bias=False, vocab_size=65024)
GPT2_XL = dict(GPT2_LARGE, n_embd=1600, n_layer=48, n_head=25)
BLOOM_1B7 = dict(hidden_size=2048, n_layer=24, n_head=16, vocab_size=250880)
DEEPSEEK_V2_LITE = dict(hidden_size=2048, num_hidden_layers=27, num_attention_heads=16, num_key_value_heads=16,
                        intermediate_size=10944, moe_intermediate_size=1408, n_routed_experts=64,
                        n_shared_experts=2, num_experts_per_tok=6, first_k_dense_replace=1, kv_lora_rank=512,
                        q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
                        vocab_size=102400, topk_method="greedy", routed_scaling_factor=1.0)
MODELS = {
    "llama-3.2-1b": ("llama", LLAMA_1B), "qwen3-1.7b": ("qwen3", QWEN3_1B7),
    "llama-3.1-8b": ("llama", LLAMA_8B), "gpt2-large": ("gpt2", GPT2_LARGE),
    "bloom-1b1": ("bloom", BLOOM_1B1), "olmoe-1b-7b": ("olmoe", OLMOE),
    "llama-2-7b": ("llama", LLAMA_2_7B), "llama-3.2-3b": ("llama", LLAMA_3B),
    "qwen2.5-1.5b": ("qwen2", QWEN25_1B5), "qwen3-4b": ("qwen3", QWEN3_4B),
    "gemma-2-2b": ("gemma2", GEMMA2_2B), "phi-3-mini-4k": ("phi3", PHI3_MINI), "opt-1.3b": ("opt", OPT_1B3),
    "falcon-7b": ("falcon", FALCON_7B), "gpt2-xl": ("gpt2", GPT2_XL), "bloom-1b7": ("bloom", BLOOM_1B7),
    "deepseek-v2-lite": ("deepseek_v2", DEEPSEEK_V2_LITE),
}


class Case:
    def __init__(self, model, precision, micro_batch, seq, attention="sdpa", recompute=False,
                 compiled=False, accumulate=1, shards=1, reshard=True):
        self.model, self.precision, self.micro_batch, self.seq = model, precision, micro_batch, seq
        self.attention, self.recompute, self.compiled = attention, recompute, compiled
        self.accumulate, self.shards, self.reshard = accumulate, shards, reshard

    def name(self):
        parts = [self.model, self.precision, f"b{self.micro_batch}", f"s{self.seq}", self.attention]
        parts += ["checkpointing"] * self.recompute + ["compile"] * self.compiled
        parts += [f"acc{self.accumulate}"] * (self.accumulate > 1) + [f"fsdp{self.shards}"] * (self.shards > 1)
        return "_".join(parts + ["keep"] * (not self.reshard))


# Most informative cases first, because --seconds may end the list early.
CASES = [
    Case("llama-3.2-1b", "bf16", 4, 2048), Case("llama-3.2-1b", "autocast", 4, 2048),
    Case("llama-3.2-1b", "bf16", 4, 2048, recompute=True), Case("llama-3.2-1b", "bf16", 4, 2048, "eager"),
    Case("llama-3.2-1b", "bf16", 1, 512), Case("llama-3.2-1b", "bf16", 1, 2048),
    Case("llama-3.2-1b", "bf16", 8, 2048), Case("llama-3.2-1b", "autocast", 4, 2048, recompute=True),
    Case("qwen3-1.7b", "bf16", 2, 4096), Case("qwen3-1.7b", "autocast", 2, 2048),
    Case("gpt2-large", "autocast", 8, 1024), Case("gpt2-large", "autocast", 8, 1024, "eager"),
    Case("gpt2-large", "bf16", 8, 1024), Case("gpt2-large", "bf16", 1, 1024),
    Case("bloom-1b1", "bf16", 4, 2048, "eager"), Case("bloom-1b1", "autocast", 2, 2048, "eager"),
    Case("olmoe-1b-7b", "bf16", 4, 2048),
    Case("olmoe-1b-7b", "bf16", 1, 2048, recompute=True),
    Case("llama-3.1-8b", "bf16", 1, 2048), Case("llama-3.1-8b", "bf16", 4, 2048, recompute=True),
    Case("llama-3.1-8b", "bf16", 1, 512), Case("llama-3.1-8b", "bf16", 2, 4096, recompute=True),
    Case("llama-3.2-1b", "bf16", 4, 2048, compiled=True),
    Case("qwen3-1.7b", "bf16", 1, 1024), Case("llama-3.2-1b", "autocast", 1, 2048, "eager"),
    Case("gpt2-large", "autocast", 1, 1024), Case("llama-3.2-1b", "bf16", 2, 2048, accumulate=4),
]


HELD_OUT_CASES = [
    Case("llama-3.2-3b", "bf16", 2, 2048), Case("opt-1.3b", "bf16", 4, 2048),
    Case("deepseek-v2-lite", "bf16", 1, 2048), Case("gpt2-xl", "bf16", 4, 1024),
    Case("qwen2.5-1.5b", "autocast", 2, 2048), Case("gemma-2-2b", "bf16", 2, 2048, "eager"),
    Case("phi-3-mini-4k", "bf16", 2, 4096, recompute=True), Case("bloom-1b7", "bf16", 2, 2048, "eager"),
    Case("falcon-7b", "bf16", 2, 2048, recompute=True), Case("qwen3-4b", "bf16", 2, 4096),
    Case("llama-2-7b", "bf16", 1, 4096), Case("llama-2-7b", "bf16", 4, 4096, recompute=True),
    Case("opt-1.3b", "autocast", 4, 2048, "eager"), Case("opt-1.3b", "bf16", 1, 512),
    Case("gpt2-xl", "autocast", 2, 1024), Case("gemma-2-2b", "autocast", 1, 2048, "eager"),
    Case("deepseek-v2-lite", "bf16", 4, 2048, recompute=True), Case("qwen2.5-1.5b", "bf16", 4, 2048),
    Case("phi-3-mini-4k", "autocast", 1, 2048), Case("llama-3.2-3b", "bf16", 1, 512),
    Case("qwen3-4b", "autocast", 1, 2048, recompute=True), Case("falcon-7b", "bf16", 1, 1024),
    Case("bloom-1b7", "autocast", 1, 2048, "eager"), Case("qwen2.5-1.5b", "bf16", 4, 2048, compiled=True),
]


# Precision "mixed": fp32 shards, gathered as bf16, gradients reduced in fp32, as torchtitan does.
SHARDED_CASES = [
    Case("llama-3.1-8b", "mixed", 1, 4096, recompute=True, shards=8), Case("llama-3.2-3b", "mixed", 2, 2048, shards=8),
    Case("qwen3-4b", "mixed", 2, 2048, shards=4), Case("llama-3.1-8b", "mixed", 1, 2048, shards=8),
    Case("qwen3-4b", "mixed", 4, 4096, recompute=True, shards=16),
    Case("llama-3.2-1b", "mixed", 4, 2048, shards=4, compiled=True),
    Case("llama-3.2-3b", "mixed", 2, 2048, shards=8, reshard=False), Case("llama-2-7b", "mixed", 1, 4096, shards=64),
    Case("olmoe-1b-7b", "mixed", 2, 2048, shards=8), Case("llama-3.1-8b", "mixed", 2, 8192, recompute=True, shards=64),
    Case("qwen3-1.7b", "mixed", 4, 2048, shards=2), Case("llama-3.1-8b", "mixed", 1, 4096, shards=16, compiled=True),
    Case("phi-3-mini-4k", "mixed", 2, 4096, recompute=True, shards=8),
    Case("qwen2.5-1.5b", "mixed", 4, 2048, shards=8, accumulate=2), Case("llama-3.2-3b", "bf16", 2, 2048, shards=8),
]
# No price of tpsim was derived from these, except for what accumulation keeps.
SHARDED_HELD_OUT_CASES = [
    Case("qwen2.5-1.5b", "mixed", 4, 2048, shards=8, accumulate=2), Case("qwen2.5-1.5b", "mixed", 4, 2048, shards=8),
    Case("llama-3.2-1b", "mixed", 1, 2048, shards=8, accumulate=4), Case("qwen3-4b", "mixed", 1, 2048, shards=8, accumulate=4),
    Case("gemma-2-2b", "mixed", 1, 2048, "eager", shards=8), Case("opt-1.3b", "mixed", 4, 2048, shards=16),
    Case("gpt2-xl", "mixed", 4, 1024, shards=4), Case("bloom-1b7", "mixed", 2, 2048, "eager", shards=8),
    Case("falcon-7b", "mixed", 1, 2048, shards=8, recompute=True), Case("deepseek-v2-lite", "mixed", 1, 2048, shards=16),
    Case("llama-2-7b", "bf16", 2, 4096, shards=8, recompute=True), Case("qwen3-4b", "mixed", 1, 4096, shards=32, reshard=False),
    Case("llama-3.2-3b", "mixed", 4, 4096, shards=32, recompute=True), Case("phi-3-mini-4k", "mixed", 1, 4096, shards=4),
    Case("olmoe-1b-7b", "bf16", 1, 4096, shards=8, recompute=True),
    Case("llama-3.2-3b", "mixed", 1, 4096, shards=16, compiled=True),
]
ALL_CASES = {"first": CASES, "held-out": HELD_OUT_CASES, "sharded": SHARDED_CASES,
             "sharded-held-out": SHARDED_HELD_OUT_CASES}

# Cases whose kernels are counted and whose memory snapshots are written, by their place in the list.
KERNEL_CASES = {"first": (0, 1, 2, 3, 10, 16), "held-out": (1, 2, 3, 5, 8), "sharded": (),
                "sharded-held-out": ()}
SNAPSHOT_CASES = {"first": (0, 1, 2), "held-out": (3, 9), "sharded": (0, 1, 2),
                  "sharded-held-out": (0, 2)}
