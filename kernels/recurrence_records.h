// Ops of recurrences that take tokens in chunks, as records: what they multiply and move. No device
// computes them yet; they are traced and priced (Device::note).
//
// Mamba-2 (Dao & Gu 2024, section 6): inside a chunk of Q tokens scores C B' weigh the values, like
// attention's; a chunk leaves a state of key_dim x value_dim for each head, which is passed from
// chunk to chunk and read by the next one. Gated delta nets (Yang et al. 2024) besides correct what
// the state holds, by a triangular system of each chunk. The kernels are those of mamba_ssm
// (ssd_combined.py, whose backward makes states and convolution again) and of
// flash-linear-attention (chunk_gated_delta_rule), one for each step, with results in memory
// between them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/block_shape.h"
#include "core/program/program.h"

namespace tpsim {

// A rank's share: heads and groups are those of this rank.
struct ScanShape {
  MixerKind kind = MixerKind::kMamba2;
  std::int64_t tokens = 0;  // whole chunks of them
  std::int64_t heads = 0, key_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t chunk = 0;
  std::int64_t decays = 0;  // of a head, where there are several: one for each channel of a key
};
// Elements of the states that all chunks leave.
std::int64_t state_elements(const ScanShape& shape);

// One launch: least FLOPs and bytes.
struct ScanKernel {
  double flops = 0, bytes = 0;
};
// Of kScanForward or kScanBackward.
std::vector<ScanKernel> scan_kernels(const OpKey& key);

// kind: kScanForward or kScanBackward.
OpRecord scan_record(OpKind kind, const ScanShape& shape, DType dtype, const Label& label);
// A causal convolution over `taps` tokens of every channel by itself, with SiLU behind it.
OpRecord convolution_record(OpKind kind, std::int64_t tokens, std::int64_t channels,
                            std::int64_t taps, DType dtype, const Label& label);
// y = x * activation(gate), x normed before or not.
OpRecord gate_record(OpKind kind, std::int64_t tokens, std::int64_t width, bool normed, DType dtype,
                     const Label& label);

}  // namespace tpsim
