#include <array>

#include "app/documents/key_meanings.h"

namespace tpsim::app {
namespace {

constexpr std::array kProfileMeanings = {
    KeyMeaning{"profile.source", "source of the samples"},
    KeyMeaning{"profile.date", "date of the measurement"},
    KeyMeaning{"profile.provenance",
               "measured: by tpsim profile on the GPU itself; published: from published "
               "measurements; datasheet: from peaks only"},
    KeyMeaning{"profile.machine", "machine on which tpsim profile ran"},
    KeyMeaning{"profile.machine.description",
               "GPU and driver, or processor, cores and operating system"},
    KeyMeaning{"profile.machine.devices", "number of such GPUs in the machine; 0: unknown"},
    KeyMeaning{"profile.machine.rank_jitter",
               "relative standard deviation of a rank's step time while all GPUs work; on this "
               "machine, added in quadrature to rank_jitter of the stack"},
    KeyMeaning{"profile.device", "properties of the GPU"},
    KeyMeaning{"profile.device.name", "name of the GPU"},
    KeyMeaning{"profile.device.source", "source of the properties"},
    KeyMeaning{"profile.device.memory", "total GPU memory as the driver reports it"},
    KeyMeaning{"profile.device.processors", "streaming multiprocessors (GPU) or cores"},
    KeyMeaning{"profile.device.matmul_peak", "dense peak of GEMMs in matmul_dtype"},
    KeyMeaning{"profile.device.matmul_dtype", "dtype of the operands for which matmul_peak holds"},
    KeyMeaning{"profile.device.fp8_peak", "dense peak of GEMMs in fp8; omitted: not supported"},
    KeyMeaning{"profile.device.mxfp8_peak",
               "dense peak of GEMMs in MXFP8 (a scale per 32 elements); omitted: not supported"},
    KeyMeaning{"profile.device.nvfp4_peak", "dense peak of GEMMs in NVFP4; omitted: not supported"},
    KeyMeaning{"profile.device.vector_peak", "peak of fp32 arithmetic without tensor cores"},
    KeyMeaning{"profile.device.memory_bandwidth", "peak memory bandwidth"},
    KeyMeaning{"profile.device.measured_bandwidth",
               "memory bandwidth of the GPU that timed the GEMM samples [memory_bandwidth]"},
    KeyMeaning{"profile.device.asynchronous", "kernels run asynchronously to the host"},
    KeyMeaning{"profile.model",
               "constants for kernels without sample; omitted constants are typical of the GPUs in "
               "data/profiles"},
    KeyMeaning{"profile.model.source", "source of the constants"},
    KeyMeaning{"profile.model.provenance", "origin of the constants, as provenance of the profile"},
    KeyMeaning{"profile.model.matmul_efficiency",
               "rate of large GEMMs, relative to the peak after tile and wave quantization [0.78]"},
    KeyMeaning{"profile.model.tile_m", "rows of the output tile that one SM computes [128]"},
    KeyMeaning{"profile.model.tile_n", "columns of the output tile that one SM computes [256]"},
    KeyMeaning{"profile.model.matmul_latency",
               "time of one GEMM in addition to its tiles: launch, prologue and epilogue [2.5 us]"},
    KeyMeaning{"profile.model.matmul", "constants of the GEMM time model"},
    KeyMeaning{"profile.model.matmul.wave_rounding",
               "wave quantization: share of the idle SM time of a partial wave that is lost; below "
               "1 with split-K or stream-K [0.1]"},
    KeyMeaning{
        "profile.model.matmul.small_tile_exponent",
        "a tile of area a reaches (a / area of the largest tile) ^ this number of the rate [0.05]"},
    KeyMeaning{"profile.model.matmul.epilogue_exposed",
               "share of the time of output writes that does not overlap with compute [0.55]"},
    KeyMeaning{"profile.model.matmul.traffic_efficiency",
               "share of the memory bandwidth that GEMMs achieve for operands and output [0.8]"},
    KeyMeaning{
        "profile.model.matmul.unaligned_rate",
        "relative rate of GEMMs with an operand whose rows are not a multiple of 16 bytes [0.68]"},
    KeyMeaning{"profile.model.matmul.unaligned_batched_rate",
               "unaligned_rate of batched GEMMs [0.68]"},
    KeyMeaning{"profile.model.matmul.nn_layout_factor",
               "time of dgrad GEMMs (no transposed operand), relative to forward GEMMs of the same "
               "size [1]"},
    KeyMeaning{"profile.model.matmul.tn_layout_factor",
               "time of wgrad GEMMs (first operand transposed), relative to forward GEMMs of the "
               "same size [1]"},
    KeyMeaning{"profile.model.matmul.split_sum_cost",
               "additional time of 8-bit GEMMs whose partial sums are promoted to fp32, relative "
               "to the GEMM at full rate [0]"},
    KeyMeaning{"profile.model.sustained_clock",
               "rate of GEMMs at the clock sustained in training, relative to the rate at burst "
               "clock [0.9]"},
    KeyMeaning{"profile.model.narrow_sustained_clock",
               "sustained_clock of 8-bit and 4-bit GEMMs; 0: same as sustained_clock [0]"},
    KeyMeaning{"profile.model.streaming_efficiency",
               "share of the memory bandwidth that elementwise kernels achieve [0.85]"},
    KeyMeaning{"profile.model.reduction_efficiency",
               "share of the memory bandwidth that norm and softmax kernels achieve [0.75]"},
    KeyMeaning{"profile.model.flash_forward_efficiency",
               "share of the GEMM peak that fused attention achieves in forward [0.65]"},
    KeyMeaning{"profile.model.flash_backward_efficiency",
               "share of the GEMM peak that fused attention achieves in backward [0.53]"},
    KeyMeaning{"profile.model.attention_speeds",
               "speed of attention kernels, relative to the fused kernel of the samples [flash1 "
               "0.55, others 1]"},
    KeyMeaning{"profile.model.attention_speeds.flash1", "relative speed of FlashAttention 1"},
    KeyMeaning{"profile.model.attention_speeds.flash2", "relative speed of FlashAttention 2"},
    KeyMeaning{"profile.model.attention_speeds.flash3",
               "relative speed of FlashAttention 3; 1 if the GPU has no such kernel"},
    KeyMeaning{"profile.model.attention_speeds.cudnn", "relative speed of cuDNN's fused attention"},
    KeyMeaning{"profile.model.kernel_latency", "time of an empty kernel [2.5 us]"},
    KeyMeaning{"profile.burst_clocks",
               "ops were timed in short bursts at burst clock, so that predictions slow GEMMs by "
               "sustained_clock"},
    KeyMeaning{"profile.runtime",
               "overheads and clocks measured by tpsim profile; omitted: not measured"},
    KeyMeaning{"profile.runtime.launch",
               "host time per kernel launch; replaces host.per_op of the stacks reference and "
               "reference-cpu"},
    KeyMeaning{"profile.runtime.launch_gap",
               "GPU idle time between two kernels of a stream while the host runs ahead"},
    KeyMeaning{"profile.runtime.empty_kernel", "GPU time of a nearly empty kernel"},
    KeyMeaning{"profile.runtime.upload", "bandwidth of copies from pinned host memory to the GPU"},
    KeyMeaning{"profile.runtime.download",
               "bandwidth of copies from the GPU to pinned host memory"},
    KeyMeaning{"profile.runtime.context",
               "GPU memory in use in addition to tensors; replaces memory.context of the stacks "
               "reference and reference-cpu"},
    KeyMeaning{"profile.runtime.burst_mhz", "SM clock in MHz during short work"},
    KeyMeaning{"profile.runtime.sustained_mhz", "SM clock in MHz under sustained GEMMs"},
    KeyMeaning{"profile.runtime.sustained_watts", "GPU power in W under sustained GEMMs"},
    KeyMeaning{"profile.runtime.sustained_celsius",
               "GPU temperature in degrees Celsius under sustained GEMMs"},
    KeyMeaning{"profile.algorithms_chosen_by",
               "library, its version and GPU for which algorithms hold"},
    KeyMeaning{"profile.algorithms",
               "fastest GEMM algorithms found, which tpsim run uses again on such a GPU"},
    KeyMeaning{"profile.algorithms.choice",
               "one algorithm in the library's encoding: GEMM shape and kernel settings"},
    KeyMeaning{"profile.ops", "samples of kernel times, grouped by op, variant and dtype"},
    KeyMeaning{"profile.ops.op", "kind of the kernel (OpKind in core/program/program.h)"},
    KeyMeaning{"profile.ops.variant",
               "variant of the kernel as a number; its bits depend on op (core/program/program.h)"},
    KeyMeaning{"profile.ops.dtype", "dtype of the operands"},
    KeyMeaning{"profile.ops.dims", "number of dimensions at the start of each sample"},
    KeyMeaning{"profile.ops.samples",
               "one row per size: its dimensions, median time in s, and optionally the relative "
               "median absolute deviation and the number of timings"},
    KeyMeaning{"profile.sustained",
               "samples of ops timed again at sustained clocks and temperature; they take "
               "precedence over ops"},
    KeyMeaning{
        "profile.link",
        "link between the GPUs that timed collectives; omitted: that of the predicted cluster"},
    KeyMeaning{
        "profile.collectives",
        "samples of collective times on one node, grouped by collective and number of ranks"},
    KeyMeaning{"profile.collectives.collective", "collective, or P2P send and receive"},
    KeyMeaning{"profile.collectives.ranks", "number of ranks of the communicator"},
    KeyMeaning{"profile.collectives.samples",
               "one row per size: size of the whole array in bytes, as in nccl-tests, and median "
               "time in s"},
};

}  // namespace

std::span<const KeyMeaning> profile_key_meanings() { return kProfileMeanings; }

}  // namespace tpsim::app
