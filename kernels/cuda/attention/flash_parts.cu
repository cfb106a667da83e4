// Sums dk and dv over the units of a key/value head. Backward divides a key/value head into several
// units if there are too few key blocks to occupy the GPU.
#include "kernels/cuda/attention/flash_turns.cuh"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {
namespace {

constexpr int kThreads = 256;

// One thread for each pack of columns of [sample][key/value head][key].
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(const HeadArray<const float> from, const HeadArray<T> to,
                     const FlashSizes sizes, int parts, std::int64_t packs) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (thread >= packs) return;
  const int row_packs = sizes.head_dim / kPack;
  const int column = static_cast<int>(thread % row_packs) * kPack;
  const std::int64_t row = thread / row_packs;
  const std::int64_t key = row % sizes.keys, head = row / sizes.keys % sizes.kv_heads;
  const std::int64_t sample = row / sizes.keys / sizes.kv_heads;
  float sums[kPack] = {};
  for (int part = 0; part < parts; ++part) {
    const Raw<float, kPack> one =
        raw_at<float, kPack>(from.at(sample, head * parts + part) + key * from.position + column);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sums[i] += one[i];
  }
  Raw<T, kPack> pack;
#pragma unroll
  for (int i = 0; i < kPack; ++i) pack.set(i, sums[i]);
  pack.write(to.at(sample, head) + key * to.position + column);
}

HeadArray<const float> read_only(const HeadArray<float>& x) {
  return {x.data, x.position, x.sample, x.head};
}

}  // namespace

SharedSums shared_sums(const FlashBackward& op, const FlashMemory& memory, std::byte* scratch,
                       int keys_of_block) {
  auto* const turns = reinterpret_cast<int*>(scratch + memory.turns);
  SharedSums work{flash_schedule(op.dims, memory, keys_of_block),
                  turns + memory.turn_count,
                  turns,
                  reinterpret_cast<float4*>(scratch + memory.sums),
                  {},
                  {}};
  if (memory.parts > 1) {
    const std::int64_t columns = flash_columns(op.dims);
    const std::int64_t unit = key_count(op.dims) * columns;
    const std::int64_t sample = work.schedule.sample_units * unit;
    auto* const parts = reinterpret_cast<float*>(scratch + memory.partials);
    work.dk_parts = {parts, columns, sample, unit};
    work.dv_parts = {parts + op.dims.batch * sample, columns, sample, unit};
  }
  return work;
}

void add_parts(const FlashBackward& op, const SharedSums& work, const CudaState& state) {
  if (work.dk_parts.data == nullptr) return;
  const AttentionDims& d = op.dims;
  const std::int64_t packs = d.batch * d.kv_heads * key_count(d) * (d.head_dim / kPack);
  const auto blocks = static_cast<unsigned>((packs + kThreads - 1) / kThreads);
  const int parts = work.schedule.sample_units / static_cast<int>(d.kv_heads);
  with_half_type(op.dk.tensor.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto add = [&](const HeadArray<float>& from, const Heads& to) {
      add_parts_kernel<T><<<blocks, kThreads, 0, state.stream>>>(read_only(from), head_array<T>(to),
                                                                 flash_sizes(op), parts, packs);
    };
    add(work.dk_parts, op.dk);
    add(work.dv_parts, op.dv);
  });
}

}  // namespace tpsim
