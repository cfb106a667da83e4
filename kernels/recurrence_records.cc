#include "kernels/recurrence_records.h"

#include <algorithm>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr double kWide = 4;  // bytes of fp32 elements: decay rates, states, scores of a chunk

ScanShape shape_of(const OpKey& key) {
  const auto [tokens, heads, key_heads, key_dim, value_dim, chunk, decays, x7] = key.dims;
  return {static_cast<MixerKind>(key.variant),
          tokens,
          heads,
          key_heads,
          key_dim,
          value_dim,
          chunk,
          decays};
}

// Sizes of a scan's tensors in elements, and FLOPs of its GEMMs. The kernels below combine them.
struct ScanSizes {
  double values;  // x and y: heads x value_dim
  double keys;    // B, or C: key_heads x key_dim
  double rates;   // decay rates of all tokens and heads
  double states;
  double scores;  // tokens x chunk x key_heads
  double width;   // bytes per element
  // FLOPs of one GEMM: values with states, scores with values (the causal half of a chunk's
  // scores), and keys with queries (all scores of a chunk).
  double of_states, of_values, of_keys;

  ScanSizes(const ScanShape& s, double bytes)
      : values(number(s.tokens * s.heads * s.value_dim)),
        keys(number(s.tokens * s.key_heads * s.key_dim)),
        rates(number(s.tokens * s.heads * std::max<std::int64_t>(1, s.decays))),
        states(number(state_elements(s))),
        scores(number(s.tokens * s.chunk * s.key_heads)),
        width(bytes),
        of_states(2 * values * number(s.key_dim)),
        of_values(values * number(s.chunk)),
        of_keys(2 * keys * number(s.chunk)) {}

  static double number(std::int64_t n) { return static_cast<double>(n); }
};

// Kernels that forward and backward share: cumulative sums of the decay rates of a chunk, states of
// each chunk, pass of states from chunk to chunk, scores of a chunk.
std::vector<ScanKernel> mamba_states(const ScanSizes& s) {
  return {{0, s.rates * (s.width + 2 * kWide)},
          {s.of_states, (s.values + s.keys) * s.width + 2 * s.rates * kWide + s.states * kWide},
          {0, s.states * (kWide + s.width)},
          {s.of_keys, 2 * s.keys * s.width + s.scores * kWide}};
}

std::vector<ScanKernel> mamba_forward(const ScanSizes& s) {
  std::vector<ScanKernel> kernels = mamba_states(s);
  kernels.push_back({s.of_states + s.of_values, (2 * s.values + s.keys + s.states) * s.width +
                                                    s.scores * kWide + 2 * s.rates * kWide});
  return kernels;
}

std::vector<ScanKernel> mamba_backward(const ScanSizes& s) {
  std::vector<ScanKernel> kernels = mamba_states(s);
  const double both = 2 * s.values * s.width;  // x and the gradient of y
  const std::vector<ScanKernel> slopes = {
      // Gradients of states, and their pass from chunk to chunk in reverse order.
      {s.of_states, (s.values + s.keys + s.states) * s.width},
      {0, 4 * s.states * s.width},
      // Gradients of x, and of B and C through the states.
      {s.of_states + s.of_values,
       both + (s.values + s.keys + s.states) * s.width + s.scores * kWide},
      {s.of_states, (s.values + s.keys + s.states) * s.width + s.keys * kWide},
      {s.of_states, (s.values + s.states) * s.width + s.keys * kWide},
      // Gradients of scores, and of B and C through the scores.
      {s.of_values, both + s.scores * kWide},
      {s.of_keys, s.scores * kWide + s.keys * (s.width + 2 * kWide)},
      {s.of_keys, s.scores * kWide + s.keys * (s.width + 2 * kWide)},
      // Gradients of the decay rates.
      {s.of_values, both + s.scores * kWide},
      {0, s.rates * (s.width + 4 * kWide)}};
  kernels.insert(kernels.end(), slopes.begin(), slopes.end());
  return kernels;
}

// Kernels that forward and backward of a delta net share: the triangular system of a chunk, its
// application to keys and values, and the sequential states. Keys are counted once per head, since
// they are repeated for all heads before the kernels.
std::vector<ScanKernel> delta_states(const ScanSizes& s) {
  return {{s.of_values, (s.values + s.keys) * s.width},  // triangular system K K' and its inverse
          {s.of_values + s.of_keys, (2 * s.values + 2 * s.keys) * s.width + s.scores * s.width},
          {2 * s.of_states, (2 * s.values + 2 * s.keys + s.states) * s.width}};
}

std::vector<ScanKernel> delta_forward(const ScanSizes& s) {
  std::vector<ScanKernel> kernels = delta_states(s);
  const ScanKernel sums{0, 2 * s.rates * kWide};
  const ScanKernel inverse{s.of_keys / 2, (s.scores * (kWide + s.width)) + s.keys * s.width};
  const ScanKernel output{s.of_states + s.of_values + s.of_keys / 2,
                          (2 * s.values + 2 * s.keys + s.states) * s.width};
  kernels.insert(kernels.end(), {sums, inverse, output});
  return kernels;
}

std::vector<ScanKernel> delta_backward(const ScanSizes& s) {
  std::vector<ScanKernel> kernels = delta_states(s);
  // Gradients, kernel by kernel.
  const std::vector<ScanKernel> slopes = {
      {s.of_values + s.of_keys / 2, (2 * s.values + 2 * s.keys) * s.width},  // of values
      {2 * s.of_states, (3 * s.values + 3 * s.keys + s.states) * s.width},   // of states
      {3 * s.of_states + 2 * s.of_values + 2 * s.of_keys,                    // of queries and keys
       (3 * s.values + 5 * s.keys + 2 * s.states) * s.width},
      {2 * s.of_values + 3 * s.of_keys,  // through the triangular system
       (3 * s.values + 4 * s.keys) * s.width + 2 * s.scores * s.width},
      {0, 4 * s.rates * kWide}};
  kernels.insert(kernels.end(), slopes.begin(), slopes.end());
  return kernels;
}

// Reads plus writes per element, or FLOPs per element, of an elementwise op.
struct Passes {
  double forward = 0, backward = 0;
  double of(OpKind kind, OpKind forward_kind) const {
    return kind == forward_kind ? forward : backward;
  }
};

}  // namespace

std::int64_t state_elements(const ScanShape& shape) {
  const std::int64_t chunks = (shape.tokens + shape.chunk - 1) / shape.chunk;
  return chunks * shape.heads * shape.key_dim * shape.value_dim;
}

std::vector<ScanKernel> scan_kernels(const OpKey& key) {
  ScanShape shape = shape_of(key);
  const bool is_forward = key.kind == OpKind::kScanForward;
  TPSIM_CHECK(is_forward || key.kind == OpKind::kScanBackward, "a scan");
  const auto width = static_cast<double>(size_of(key.dtype));
  if (shape.kind == MixerKind::kMamba2) {
    const ScanSizes sizes(shape, width);
    return is_forward ? mamba_forward(sizes) : mamba_backward(sizes);
  }
  shape.key_heads = shape.heads;
  const ScanSizes sizes(shape, width);
  return is_forward ? delta_forward(sizes) : delta_backward(sizes);
}

OpRecord scan_record(OpKind kind, const ScanShape& shape, DType dtype, const Label& label) {
  OpRecord record{.key = {kind,
                          dtype,
                          static_cast<std::uint8_t>(shape.kind),
                          {shape.tokens, shape.heads, shape.key_heads, shape.key_dim,
                           shape.value_dim, shape.chunk, shape.decays}},
                  .label = label};
  for (const ScanKernel& kernel : scan_kernels(record.key)) {
    record.flops += kernel.flops;
    record.bytes += kernel.bytes;
  }
  return record;
}

OpRecord convolution_record(OpKind kind, std::int64_t tokens, std::int64_t channels,
                            std::int64_t taps, DType dtype, const Label& label) {
  // Backward reads the input and the output's gradient and writes the input's gradient. The
  // gradients of the taps are sums over tokens.
  constexpr Passes kPasses{2, 3};
  constexpr double kSilu = 8;
  const double elements = static_cast<double>(tokens) * static_cast<double>(channels);
  const double products = kind == OpKind::kConvolutionForward ? 1 : 3;
  return {.key = {kind, dtype, 0, {tokens, channels, taps}},
          .flops = elements * (2 * products * static_cast<double>(taps) + kSilu),
          .bytes = kPasses.of(kind, OpKind::kConvolutionForward) * elements *
                   static_cast<double>(size_of(dtype)),
          .label = label};
}

OpRecord gate_record(OpKind kind, std::int64_t tokens, std::int64_t width, bool normed, DType dtype,
                     const Label& label) {
  constexpr Passes kPasses{3, 5}, kFlops{14, 28};
  const double elements = static_cast<double>(tokens) * static_cast<double>(width);
  return {.key = {kind, dtype, static_cast<std::uint8_t>(normed ? 1 : 0), {tokens, width}},
          .flops = kFlops.of(kind, OpKind::kGateForward) * elements,
          .bytes = kPasses.of(kind, OpKind::kGateForward) * elements *
                   static_cast<double>(size_of(dtype)),
          .label = label};
}

}  // namespace tpsim
