"""Published facts of each device with their sources, for build_profiles.py. The measured tables
are its other input."""

A100 = {
    "name": "a100-sxm4-80gb",
    "gemm": "gemm_a100_sxm4_80gb.csv.gz",
    "gpu": "NVIDIA A100-SXM4-80GB",
    "flash_kernel": "vllm_flash_attn",
    "device": {
        "name": "NVIDIA A100-SXM4-80GB",
        "source": "NVIDIA A100 80GB datasheet; memory: total_memory of torch.cuda.get_device_properties",
        "memory": "81251 MiB",
        "processors": 108,
        "matmul_peak": "312 TFLOP/s",
        "matmul_dtype": "bf16",
        "vector_peak": "19.5 TFLOP/s",
        "memory_bandwidth": "2039 GB/s",
        "asynchronous": True,
    },
    "published": {
        "sustained_clock": (0.85, "products of random numbers, tools/sustained_clocks.py: 0.85 with the operands of sglang, 0.95 with those of TensorRT-LLM; the lower one, since a step works for seconds: 257 TFLOP/s (thonking.ai, 8192 x 8192 x 8192 of normal numbers) over the 302 of matmul_efficiency is 0.85 too"),
        "nn_layout_factor": (1.0, "183 products in three layouts on A100-PCIe, MooreThreads/SimuMax: dgrad and wgrad as fast as forward within 1 %, traffic of fp32 accumulation apart"),
        "tn_layout_factor": (1.0, "the same"),
        "unaligned_rate": (0.5, "vocabulary 50257 against 50304 makes GPT-2 training 25 % slower on A100, karpathy/nanoGPT, which its logits explain at half their rate"),
        "unaligned_batched_rate": (0.0327, "fitted with the calibration rows of bloom_jean_zay in data/published_runs/environments.json, of which A-122 has heads of 108: attention products at 11 TFLOP/s"),
        "streaming_efficiency": (0.82, "streaming kernels reach 0.80-0.85 of the memory bandwidth; aiconfigurator prices memory operations at 0.8"),
        "reduction_efficiency": (0.62, "LayerNorm 1.26 TB/s forward, 1.16 backward, NVIDIA/apex PR 1037"),
        "flash_backward_ratio": (0.82, "flash_backward_efficiency over forward: 168 against 204 TFLOP/s of FlashAttention-2 at 4096 tokens, A100 PCIe, NVIDIA/cudnn-frontend benchmark/"),
        "kernel_latency": (3e-6, "aiconfigurator adds 3 us to every memory operation"),
    },
}
# Only for held-out flash attention; build_newer_profiles.py builds its profile.
H200 = {"name": "h200", "gpu": "NVIDIA H200", "flash_kernel": "vllm_flash_attn_fa3"}
A100_40GB = {
    "name": "a100-sxm4-40gb",
    "measured_on": "all measured on the A100 with 80 GB, which has the same processors and clocks",
    "device": dict(
        A100["device"],
        name="NVIDIA A100-SXM4-40GB",
        source="NVIDIA A100 40GB datasheet; memory: total_memory of torch.cuda.get_device_properties",
        memory="40536 MiB",
        memory_bandwidth="1555 GB/s"),
}
B200 = {
    "name": "b200-simumax",
    "gpu": "B200-SXM",
    "device": {
        "name": "NVIDIA B200",
        "source": "NVIDIA B200 datasheet: 2.25 PFLOP/s dense bf16, 8 TB/s; memory: as nvidia-smi shows it",
        "memory": "183359 MiB",
        "processors": 148,
        "matmul_peak": "2250 TFLOP/s",
        "matmul_dtype": "bf16",
        "fp8_peak": "4500 TFLOP/s",
        "vector_peak": "75 TFLOP/s",
        "memory_bandwidth": "8 TB/s",
        "asynchronous": True,
    },
    "burst_clocks": True,
    "published": {
        "sustained_clock": (0.9, "fitted on the calibration rows of simumax_b200_a100pcie in data/published_runs/environments.json: a full step runs slower than its products by themselves"),
        "nn_layout_factor": (1.0, "not used: products in all three layouts below"),
        "tn_layout_factor": (1.0, "the same"),
        "unaligned_rate": (0.68, "as h100-sxm: none measured"),
        "unaligned_batched_rate": (0.68, "the same"),
        "streaming_efficiency": (0.85, "as h200"),
        "reduction_efficiency": (0.75, "as h200"),
        "flash_backward_ratio": (0.83, "flash_backward_efficiency over forward: 1641 to 1871 against 1961 to 2243 TFLOP/s with 64 and 128 heads of 4096 tokens, samples below"),
        "kernel_latency": (2.5e-6, "as h200"),
    },
}
A100_PCIE = {
    "name": "a100-pcie-80gb",
    "gpu": "A100-80GB-PCIe",
    "burst_clocks": False,
    "device": dict(
        A100["device"],
        name="NVIDIA A100-PCIe-80GB",
        source="NVIDIA A100 80GB PCIe datasheet: 300 W, 1935 GB/s; memory: as a100-sxm4-80gb",
        memory_bandwidth="1935 GB/s"),
    "published": dict(
        A100["published"],
        sustained_clock=(1.0, "the products below were timed at sustained clocks"),
        nn_layout_factor=(1.0, "not used: products in all three layouts below"),
        tn_layout_factor=(1.0, "the same")),
}
