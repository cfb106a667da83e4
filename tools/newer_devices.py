"""Facts of each GPU for build_newer_profiles.py that are not in the measured tables: its row in
data/microbench/gpus.csv, its name in nvidia-smi or rocm-smi, and constants with their sources."""

NVLINK5 = {"kind": "NVLink5 through NVSwitch", "bandwidth": "900 GB/s", "latency": "0.87 us",
           "efficiency": 0.69}
CUDNN = "NVIDIA/cudnn-frontend benchmark/"
NARROW_CLOCK = ("narrow_sustained_clock: fitted likewise on fp8 and nvfp4 of GB200 with their casts "
                "taken off; GPUs without such pairs: as GB200")
# Rate of the fastest GEMM among many shapes with sides up to 20480, mean of 100 runs after 50
# warm-ups (stas00/ml-engineering at 744d01e, compute/accelerator/README.md). H200 has the chip of
# H100.
BEST_SUSTAINED = {"h100-sxm": {"bf16": 794.5e12, "fp8": 1402.6e12},
                  "h200": {"bf16": 794.5e12, "fp8": 1453.4e12}}
BLACKWELL = {
    "sustained_clock": 0.81,
    "narrow_sustained_clock": 0.8,
    "streaming_efficiency": 0.85,
    "reduction_efficiency": 0.7,
    "kernel_latency": "2.5 us",
}


def blackwell_speeds(flash2):
    """Returns attention speeds on Blackwell. FlashAttention-2 has no kernel for its tensor cores: 350
    TFLOP/s forward and 330 backward on a B200 (Dao-AILab/flash-attention issue 1589,
    meta-pytorch/tritonbench pull request 171)."""
    return {"attention_speeds": {"flash1": round(0.6 * flash2, 2), "flash2": flash2, "flash3": 0.6, "cudnn": 1.0}}


# GPUs whose best attention kernel is FlashAttention-2. Constants without measurements are those of
# similar GPUs.
ADA = {
    "sustained_clock": 0.85,
    "streaming_efficiency": 0.85,
    "reduction_efficiency": 0.75,
    "flash_forward_efficiency": 0.5,
    "flash_backward_efficiency": 0.4,
    "kernel_latency": "2.5 us",
    "attention_speeds": {"flash1": 0.55, "flash2": 1.0, "flash3": 1.0, "cudnn": 1.0},
}
# GeForce and similar boards reach their stated rate. It is only half of the rate with fp16
# accumulation, and their power limit is high enough for games.
GEFORCE = {"matmul_efficiency": 0.9, "sustained_clock": 0.97}
GEFORCE_SOURCES = ("matmul_efficiency, sustained_clock: judgement, since fp32 sums run at half of the rate of the "
                   "units and so far from their power limit; the rest as l40s")
# Ampere workstation boards run at the full rate of their units, but are limited to 230 to 300 W.
BOARD = {"matmul_efficiency": 0.8, "sustained_clock": 0.9}
BOARD_SOURCES = "matmul_efficiency, sustained_clock: judgement, between a10g and l40s; the rest as l40s"
# Attention on AMD: HazyResearch/HipKittens at f09e9685 (MIT), analysis/attn, causal, 128 wide heads,
# 1024 to 16384 tokens on an MI355X in October 2025. With 8192 tokens the best kernels of AITER reach
# 1205 TFLOP/s forward (grouped queries) and 1034 backward, AOTriton under PyTorch's
# scaled_dot_product_attention 705 and 224, Composable Kernel 866 and 489.
AITER = {"flash_forward_efficiency": 0.51, "flash_backward_efficiency": 0.44}
AOTRITON = {"flash_forward_efficiency": 0.30, "flash_backward_efficiency": 0.095}


HIPKITTENS = "HazyResearch/HipKittens at f09e9685, October 2025"
AOTRITON_SOURCE = ("attention_speeds: AOTriton under PyTorch at the share of peak that it reaches on an MI355X "
                   f"({HIPKITTENS})")


def training_time(rates):
    """Returns the time of attention forward and backward (2.5 times the FLOPs), per FLOP of forward
    and in units of the peak rate."""
    return 1 / rates["flash_forward_efficiency"] + 2.5 / rates["flash_backward_efficiency"]


def cdna_attention(best):
    """Returns attention constants with AOTriton at the share of peak that it reaches on an MI355X."""
    aotriton = round(training_time(best) / training_time(AOTRITON), 2)
    return best | {"attention_speeds": {"flash1": aotriton, "flash2": aotriton, "flash3": aotriton, "cudnn": 1.0}}


COMPOSABLE_KERNEL = {"flash_forward_efficiency": 0.37, "flash_backward_efficiency": 0.21}
ROCM_6_1 = round(training_time(COMPOSABLE_KERNEL) / training_time(AOTRITON | {"flash_backward_efficiency": 0.0153}), 2)
ROCM_6_1_SPEEDS = {"flash1": ROCM_6_1, "flash2": ROCM_6_1, "flash3": ROCM_6_1, "cudnn": 1.0}
CDNA = {
    "sustained_clock": 1.0,
    "streaming_efficiency": 0.75,
    "reduction_efficiency": 0.65,
    "kernel_latency": "4 us",
} | cdna_attention({"flash_forward_efficiency": 0.4, "flash_backward_efficiency": 0.3})
BLACKWELL_SOURCES = (
    "sustained_clock: least |log error| of products of GB200 and B200 timed for a second against the "
    f"same in short bursts, data/microbench/gemm_newer_gpus.csv.gz; {NARROW_CLOCK}; "
    "streaming_efficiency, kernel_latency: as h200; reduction_efficiency: RMSNorm of cuDNN on GB200 at "
    f"6.0 TB/s forward and 5.2 backward, {CUDNN}; attention_speeds: "
    "flash2 from 350 and 330 TFLOP/s on a B200, Dao-AILab/flash-attention issue 1589 and "
    "meta-pytorch/tritonbench pull request 171")
GB200_FLASH = {"flash_forward_efficiency": 0.645, "flash_backward_efficiency": 0.526}
GB300_FLASH = {"flash_forward_efficiency": 0.78, "flash_backward_efficiency": 0.572}
FLASH = "flash efficiencies: Llama 3.1 of 2048 to 8192 tokens by cuDNN on {}, without the ramp, " + CUDNN
HOPPER = "all constants: as h100-sxm, the same chip"

MEASURED = [
    {"name": "b200", "facts": "B200-SXM", "smi": "NVIDIA B200", "table": "B200",
     "memory": "183359 MiB", "bandwidth": "8 TB/s", "block_scales": True,
     "link": NVLINK5, "model": BLACKWELL | blackwell_speeds(0.27) | GB200_FLASH,
     "sources": f"{BLACKWELL_SOURCES}; {FLASH.format('GB200, the same share of its peak')}"},
    {"name": "gb200", "facts": "GB200", "smi": "NVIDIA GB200", "table": "GB200", "block_scales": True, "link": NVLINK5,
     "model": BLACKWELL | blackwell_speeds(0.24) | GB200_FLASH, "flash": "GB200",
     "sources": f"{BLACKWELL_SOURCES}; {FLASH.format('GB200')}"},
    {"name": "b300", "facts": "B300-SXM", "smi": "NVIDIA B300 SXM6 AC", "table": "B300 SXM6 AC",
     "link": NVLINK5, "block_scales": True,
     "model": BLACKWELL | blackwell_speeds(0.24) | GB300_FLASH,
     "sources": f"{BLACKWELL_SOURCES}; {FLASH.format('GB300, the same share of its peak')}"},
    {"name": "gb300", "facts": "GB300", "smi": "NVIDIA GB300", "table": "GB300", "block_scales": True, "link": NVLINK5,
     "model": BLACKWELL | blackwell_speeds(0.22) | GB300_FLASH, "flash": "GB300",
     "sources": f"{BLACKWELL_SOURCES}; {FLASH.format('GB300')}"},
    {"name": "l40s", "facts": "L40S", "smi": "NVIDIA L40S", "table": "L40S", "collectives": False,
     "model": ADA,
     "sources": "sustained_clock, flash efficiencies, attention_speeds: judgement, FlashAttention-2 "
                "being the best kernel of its kind; the rest as h200; collectives: none, as the "
                "measured hosts had no peer access"},
    {"name": "rtx-pro-6000", "facts": "RTX PRO 6000 Server",
     "smi": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
     "table": "RTX PRO 6000 Blackwell Server Edition", "block_scales": True,
     "link": {"kind": "PCIe 5.0 x16", "bandwidth": "64 GB/s", "latency": "1.5 us", "efficiency": 0.37},
     "model": ADA | {"sustained_clock": 0.95, "flash_forward_efficiency": 0.6,
                     "flash_backward_efficiency": 0.48},
     "sources": "sustained_clock, flash efficiencies, attention_speeds: judgement; the rest as h200"},
    {"name": "mi355x", "facts": "MI355X", "smi": "AMD Instinct MI355X", "table": "MI355X",
     "memory": "288 GiB", "mxfp8": True, "burst_clocks": False, "collectives": False,
     "model": CDNA | cdna_attention(AITER),
     "sources": "sustained_clock: the best product sustained, 1565 TFLOP/s (stas00/ml-engineering), "
                f"is as fast as the best of the samples; flash efficiencies: AITER at 8192 tokens, attention_speeds: AOTriton, "
                f"{HIPKITTENS}; the rest judgement; memory: datasheet, whose GB are the driver's GiB as those of MI300X "
                "are"},
]

# GPUs without measured GEMMs: constants are those of a similar GPU, or estimates.
DATASHEET = [
    {"name": "h20", "facts": "H20-96GB", "smi": "NVIDIA H20", "like": "h100-sxm", "sources": HOPPER},
    {"name": "h800", "facts": "H800-SXM5-80GB", "smi": "NVIDIA H800", "like": "h100-sxm",
     "memory": "81089 MiB", "same_chip": True, "sources": f"{HOPPER}; memory: as h100-sxm"},
    {"name": "a800", "facts": "A800-SXM4-80GB", "smi": "NVIDIA A800-SXM4-80GB",
     "like": "a100-sxm4-80gb", "memory": "81251 MiB", "same_chip": True,
     "sources": "all constants: as a100-sxm4-80gb, the same chip; memory: likewise"},
    {"name": "rtx-4090", "facts": "RTX 4090", "smi": "NVIDIA GeForce RTX 4090", "like": "l40s",
     "model": GEFORCE, "sources": f"{GEFORCE_SOURCES}, the same architecture"},
    {"name": "rtx-5090", "facts": "RTX 5090", "smi": "NVIDIA GeForce RTX 5090", "like": "rtx-pro-6000",
     "memory": "32607 MiB", "block_scales": True, "model": GEFORCE,
     "sources": f"{GEFORCE_SOURCES.replace('l40s', 'rtx-pro-6000')}, the same architecture; memory: nvidia-smi"},
    {"name": "rtx-3090", "facts": "RTX 3090", "smi": "NVIDIA GeForce RTX 3090", "like": "l40s",
     "memory": "24576 MiB", "model": GEFORCE, "sources": f"{GEFORCE_SOURCES}; memory: nvidia-smi"},
    {"name": "a10g", "facts": "A10G", "smi": "NVIDIA A10G", "like": "l40s", "memory": "23028 MiB",
     "model": GEFORCE, "sources": f"{GEFORCE_SOURCES}; memory: nvidia-smi"},
    {"name": "rtx-a5000", "facts": "RTX A5000", "smi": "NVIDIA RTX A5000", "like": "l40s",
     "memory": "24564 MiB", "model": BOARD, "sources": f"{BOARD_SOURCES}; memory: nvidia-smi"},
    {"name": "rtx-a6000", "facts": "RTX A6000", "smi": "NVIDIA RTX A6000", "like": "l40s",
     "memory": "49140 MiB", "model": BOARD, "sources": f"{BOARD_SOURCES}; memory: nvidia-smi"},
    {"name": "rtx-6000-ada", "facts": "RTX 6000 Ada", "smi": "NVIDIA RTX 6000 Ada Generation",
     "like": "l40s", "memory": "49140 MiB",
     "sources": "constants as l40s, the same chip at 300 W in place of 350; memory: nvidia-smi"},
    {"name": "h100-pcie", "facts": "H100-PCIe-80GB", "smi": "NVIDIA H100 PCIe", "like": "h100-sxm",
     "memory": "81559 MiB", "model": {"sustained_clock": 0.7},
     "sources": f"{HOPPER} at half of its power; sustained_clock: judgement, 350 W in place of 700; memory: nvidia-smi"},
    {"name": "h100-nvl", "facts": "H100-NVL-94GB", "smi": "NVIDIA H100 NVL", "like": "h100-sxm",
     "memory": "95830 MiB", "bandwidth": "3.9 TB/s", "model": {"sustained_clock": 0.75},
     "sources": f"{HOPPER} at 400 W; sustained_clock: judgement; memory: nvidia-smi; bandwidth: datasheet"},
    {"name": "gh200", "facts": "GH200-96GB", "smi": "NVIDIA GH200 480GB", "like": "h100-sxm",
     "memory": "97871 MiB", "sources": f"{HOPPER}; memory: nvidia-smi"},
    {"name": "vr200", "facts": "VR200", "smi": "NVIDIA VR200", "like": "gb300", "memory": "288 GB",
     "block_scales": True, "sources": "constants as gb300, the generation before; memory: datasheet"},
    {"name": "mi300x", "facts": "MI300X", "smi": "AMD Instinct MI300X", "table": "MI300X",
     "model": {"matmul_efficiency": 0.52} | CDNA,
     "sources": "matmul_efficiency: 668 TFLOP/s of the best bf16 product sustained "
                "(stas00/ml-engineering at 744d01e, ROCm 6.3), which sustained_clock then holds; "
                f"{AOTRITON_SOURCE}; the rest judgement; blocks of 8 bits: samples"},
    {"name": "mi300x-rocm-6.1", "facts": "MI300X", "smi": "AMD Instinct MI300X", "table": "MI300X",
     "model": CDNA | {"matmul_efficiency": 0.344} | COMPOSABLE_KERNEL | {"attention_speeds": ROCM_6_1_SPEEDS},
     "sources": "matmul_efficiency: 450 TFLOP/s of a bf16 product with ROCm 6.1 (stas00/ml-engineering); flash "
                "efficiencies: Composable Kernel on an MI355X; attention_speeds: AOTriton of PyTorch 2.3 to 2.5, whose "
                "backward ran at 20 TFLOP/s on an MI300X (pytorch/pytorch issue 135431), its forward as now; the rest "
                "as mi300x"},
    {"name": "mi325x", "facts": "MI325X", "smi": "AMD Instinct MI325X", "memory": "256 GiB",
     "model": {"matmul_efficiency": 0.6} | CDNA,
     "sources": "matmul_efficiency: 785 TFLOP/s of the best bf16 product sustained "
                "(stas00/ml-engineering at 744d01e, ROCm 6.2; HipKittens measured the same with PyTorch); "
                f"{AOTRITON_SOURCE}; the rest judgement, as mi300x; memory: datasheet"},
    {"name": "mi350x", "facts": "MI350X", "smi": "AMD Instinct MI350X", "like": "mi355x",
     "memory": "288 GiB", "mxfp8": True,
     "sources": "constants as mi355x, the same chip at lower clocks; memory: datasheet"},
    {"name": "mi250x", "facts": "MI250X (one of two dies)", "smi": "AMD Instinct MI250X",
     "memory": "64 GiB", "model": {"matmul_efficiency": 0.75} | CDNA,
     "sources": "matmul_efficiency: judgement, as v100; "
                "the rest judgement, as mi300x; memory: datasheet"},
    {"name": "v100", "facts": "V100-SXM2-32GB", "smi": "Tesla V100-SXM2-32GB", "memory": "32510 MiB",
     "model": {"matmul_efficiency": 0.55, "streaming_efficiency": 0.82, "reduction_efficiency": 0.62,
               "flash_forward_efficiency": 0.35, "flash_backward_efficiency": 0.28,
               "kernel_latency": "3 us"},
     "sources": "matmul_efficiency: 39 TFLOP/s that a GPT of 1.2 billion parameters sustains (Shoeybi et al. 2019, "
                "arXiv 1909.08053, section 5.1), recompute not counted; flash efficiencies: judgement; streaming_efficiency, "
                "reduction_efficiency, kernel_latency: as a100-sxm4-80gb; memory: nvidia-smi"},
]
