// Records of the ops of chunked recurrent layers: FLOPs and memory traffic. The ops are traced and
// priced (Device::note), but no device executes them.
//
// Mamba-2 (Dao & Gu 2024, section 6): inside a chunk of Q tokens, scores C B' weight the values as
// in attention. Each chunk computes a state of key_dim x value_dim per head, which is passed to the
// next chunk. Gated delta nets (Yang et al. 2024) also correct the state, by a triangular system in
// each chunk. The lists of kernels follow mamba_ssm (ssd_combined.py, whose backward recomputes
// states and convolution) and flash-linear-attention (chunk_gated_delta_rule). Each step is one
// kernel, which reads and writes device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/block_shape.h"
#include "core/program/program.h"

namespace tpsim {

// The shape of a scan on one rank. Heads are those of the rank.
struct ScanShape {
  MixerKind kind = MixerKind::kMamba2;
  std::int64_t tokens = 0;  // a multiple of the chunk
  std::int64_t heads = 0, key_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t chunk = 0;
  std::int64_t decays = 0;  // decay rates per head; 0: one
};
// Returns the number of elements of the states of all chunks.
std::int64_t state_elements(const ScanShape& shape);

// FLOPs of a kernel, and its least memory traffic in bytes.
struct ScanKernel {
  double flops = 0, bytes = 0;
};
// Returns the kernels of kScanForward or kScanBackward.
std::vector<ScanKernel> scan_kernels(const OpKey& key);

// Record of a scan; `kind` is kScanForward or kScanBackward.
OpRecord scan_record(OpKind kind, const ScanShape& shape, DType dtype, const Label& label);
// Record of a depthwise causal convolution over `taps` tokens, followed by SiLU.
OpRecord convolution_record(OpKind kind, std::int64_t tokens, std::int64_t channels,
                            std::int64_t taps, DType dtype, const Label& label);
// Record of y = x * activation(gate). `normed`: the op also normalizes.
OpRecord gate_record(OpKind kind, std::int64_t tokens, std::int64_t width, bool normed, DType dtype,
                     const Label& label);

}  // namespace tpsim
