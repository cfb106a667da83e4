// Rotary embedding: one block per token.
#include <cmath>
#include <vector>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"
#include "kernels/device.h"

namespace tpsim {
namespace {

template <class T>
struct RotaryRows {
  HeadRows<T> x;
  const float* table;  // from the first position: [position][cosines, then sines of the pairs]
  float sign;

  __device__ int heads() const { return static_cast<int>(x.heads); }
  __device__ int half() const { return static_cast<int>(x.dim) / 2; }
};

template <class T>
RotaryRows<T> rotary_rows(const Rotary& op, const float* table) {
  return {head_rows<T>(op.x, op.dims, op.dims.heads), table, op.inverse ? -1.0F : 1.0F};
}

// One block per token: (a, b) -> (a cos - b sin, b cos + a sin) for the pairs (d, d + half).
template <class T, int V>
__global__ void __launch_bounds__(kHeadThreads) rotary_kernel(const RotaryRows<T> a) {
  const int half = a.half(), per_head = half / V;
  T* const token = a.x.data + a.x.token_begin(blockIdx.x);
  const float* const angles = a.table + blockIdx.x / a.x.batch * 2 * half;
  for (int i = static_cast<int>(threadIdx.x); i < a.heads() * per_head; i += kHeadThreads) {
    const int d = i % per_head * V;
    T* const head = token + i / per_head * a.x.head_stride + d;
    Raw<T, V> first = raw_at<T, V>(head), second = raw_at<T, V>(head + half);
    const Raw<float, V> cosines = raw_at<float, V>(angles + d);
    const Raw<float, V> sines = raw_at<float, V>(angles + half + d);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float sine = a.sign * sines[j];
      const float x = first[j], y = second[j];
      first.set(j, x * cosines[j] - y * sine);
      second.set(j, y * cosines[j] + x * sine);
    }
    first.write(head);
    second.write(head + half);
  }
}

// Rotary embedding with given frequencies, adjacent pairs or a magnitude. Each block computes the
// angles of its token in double, once for all heads.
template <class T>
struct FreeRotaryRows {
  RotaryRows<T> rows;  // rows.table: frequencies [half]; null: computed from theta
  std::int64_t first_position;
  double theta;
  bool neighbours;
  float magnitude;
};

template <class T>
__global__ void __launch_bounds__(kHeadThreads) free_rotary_kernel(const FreeRotaryRows<T> a) {
  extern __shared__ float turns[];  // cosines, then sines
  const RotaryRows<T>& r = a.rows;
  const int half = r.half();
  const std::int64_t position = a.first_position + blockIdx.x / r.x.batch;
  for (int d = static_cast<int>(threadIdx.x); d < half; d += kHeadThreads) {
    const double frequency = r.table != nullptr ? static_cast<double>(r.table[d])
                                                : pow(a.theta, -static_cast<double>(d) / half);
    const double angle = static_cast<double>(position) * frequency;
    turns[d] = a.magnitude * static_cast<float>(cos(angle));
    turns[half + d] = a.magnitude * r.sign * static_cast<float>(sin(angle));
  }
  __syncthreads();
  T* const token = r.x.data + r.x.token_begin(blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < r.heads() * half; i += kHeadThreads) {
    const int d = i % half;
    T* const head = token + i / half * r.x.head_stride;
    T& first = head[a.neighbours ? 2 * d : d];
    T& second = head[a.neighbours ? 2 * d + 1 : d + half];
    const float x = widened(first), y = widened(second);
    first = narrowed<T>(x * turns[d] - y * turns[half + d]);
    second = narrowed<T>(y * turns[d] + x * turns[half + d]);
  }
}

// Returns the table for all positions up to the op's last, on the device. Angles are computed in
// double on the host, because fp32 leaves large angles few digits after the point.
const RotaryTable& rotary_table(const Rotary& op, CudaState& state) {
  const std::int64_t dim = op.dims.head_dim, half = dim / 2;
  RotaryTable& table = state.rotary_tables[{op.theta, dim}];
  const std::int64_t positions = op.first_position + op.dims.seq;
  if (table.positions >= positions) return table;
  std::vector<float> angles(static_cast<std::size_t>(positions * dim));
  for (std::int64_t d = 0; d < half; ++d) {
    const double exponent = 2.0 * static_cast<double>(d) / static_cast<double>(dim);
    const double period = std::pow(static_cast<double>(op.theta), exponent);
    for (std::int64_t s = 0; s < positions; ++s) {
      const double angle = static_cast<double>(s) / period;
      angles[static_cast<std::size_t>(s * dim + d)] = static_cast<float>(std::cos(angle));
      angles[static_cast<std::size_t>(s * dim + half + d)] = static_cast<float>(std::sin(angle));
    }
  }
  if (table.data != nullptr) state.memory.give_back(table.data);
  const std::size_t bytes = angles.size() * sizeof(float);
  table = {static_cast<float*>(state.memory.acquire(static_cast<std::int64_t>(bytes))), 0};
  if (table.data == nullptr) {
    throw OutOfDeviceMemory("the GPU has no memory left for a table of rotary angles");
  }
  table.positions = positions;
  check_cuda(
      cudaMemcpyAsync(table.data, angles.data(), bytes, cudaMemcpyHostToDevice, state.stream),
      "rotary angles");
  check_cuda(cudaStreamSynchronize(state.stream), "rotary angles");  // the copy reads `angles`
  return table;
}

void turn_freely(const Rotary& op, CudaState& state) {
  const auto tokens = static_cast<unsigned>(op.dims.seq * op.dims.batch);
  with_type(op.x.tensor.dtype(), [&]<class T>(Type<T>) {
    const FreeRotaryRows<T> a{rotary_rows<T>(op, elements_of(op.frequencies)), op.first_position,
                              static_cast<double>(op.theta), op.neighbours, op.magnitude};
    const auto shared = static_cast<std::size_t>(op.dims.head_dim) * sizeof(float);
    free_rotary_kernel<T><<<tokens, kHeadThreads, shared, state.stream>>>(a);
  });
}

}  // namespace

void compute(const Rotary& op, CudaState& state) {
  if (op.frequencies.defined() || op.neighbours || op.magnitude != 1) return turn_freely(op, state);
  const auto tokens = static_cast<unsigned>(op.dims.seq * op.dims.batch);
  const std::int64_t dim = op.dims.head_dim;
  const float* const table = rotary_table(op, state).data + op.first_position * dim;
  const bool packed = in_packs(op.x, dim / 2, {});
  with_type_and_width(
      op.x.tensor.dtype(), packed ? kPack : 1, [&]<class T, int V>(Type<T>, Width<V>) {
        rotary_kernel<T, V><<<tokens, kHeadThreads, 0, state.stream>>>(rotary_rows<T>(op, table));
      });
}

}  // namespace tpsim
