// Measures the speed of the CPU device's ops on one thread, relative to the speed of this machine:
// streaming ops relative to memcpy of as many bytes, GEMMs relative to the fastest GEMM.
//
// Usage: tpsim_bench_kernels. Each time is the best of many repetitions, interleaved with the
// reference, because other programs may be running.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/checks/op_cases.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/threads/thread_world.h"

namespace tpsim {
namespace {

constexpr int kRepetitions = 25;
constexpr Label kLabel{ModelPart::kMeasurement, "bench"};

using Clock = double (*)();

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the CPU time of this thread in seconds, which excludes time of other programs.
double thread_clock() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the shortest time of one call in seconds.
template <class Work>
double best_time(Work work, Clock now = thread_clock) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kRepetitions; ++i) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

double op_time(Device& device, const Op& op) {
  return best_time([&] { device.run(op); });
}

// Returns the time of memcpy in seconds. `bytes`: bytes read plus bytes written.
double copy_time(double bytes) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  std::vector<std::byte> from(half, std::byte{1}), to(half);
  volatile std::byte seen{};
  const double best = best_time([&] {
    std::memcpy(to.data(), from.data(), half);
    seen = to[half / 2];
  });
  static_cast<void>(seen);
  return best;
}

void print_streaming(Device& device) {
  fmt::print("{:<34} {:>9} {:>9} {:>14}\n", "streaming op", "us", "GB/s", "vs memcpy");
  constexpr DType kFloat = DType::kFloat32;
  const std::vector<OpKey> keys = {{OpKind::kNormForward, kFloat, 0, {1024, 1024}},
                                   {OpKind::kNormBackward, kFloat, 2, {1024, 1024}},
                                   {OpKind::kSoftmaxForward, kFloat, 1, {16, 256, 256}},
                                   {OpKind::kSoftmaxBackward, kFloat, 0, {16, 256, 256}},
                                   {OpKind::kBiasGeluForward, kFloat, 1, {1024, 4096}},
                                   {OpKind::kBiasGeluBackward, kFloat, 1, {1024, 4096}},
                                   {OpKind::kSwigluForward, kFloat, 0, {1024, 2048}},
                                   {OpKind::kSwigluBackward, kFloat, 0, {1024, 2048}},
                                   {OpKind::kBiasResidual, kFloat, 3, {1024, 1024}},
                                   {OpKind::kDropoutForward, kFloat, 3, {1024, 1024}},
                                   {OpKind::kColumnSum, kFloat, 0, {1024, 4096}},
                                   {OpKind::kRotary, kFloat, 0, {1024, 16, 64}},
                                   {OpKind::kVocabSums, kFloat, 0, {128, 32768}},
                                   {OpKind::kCrossEntropyBackward, kFloat, 0, {128, 32768}},
                                   {OpKind::kAdd, kFloat, 0, {1 << 20}},
                                   {OpKind::kAdd, DType::kBFloat16, 0, {1 << 20}},
                                   {OpKind::kCast, kFloat, 1, {1 << 20}},
                                   {OpKind::kSumSquares, kFloat, 0, {1 << 20}},
                                   {OpKind::kAdamW, kFloat, 0, {1 << 20}}};
  for (const OpKey& key : keys) {
    const Op op = make_op(device, key, 1);
    const double bytes = describe(op).bytes;
    const double seconds = op_time(device, op);
    fmt::print("{:<34} {:>9.0f} {:>9.1f} {:>13.0f}%\n", to_string(key), seconds * 1e6,
               bytes / seconds / 1e9, 100 * copy_time(bytes) / seconds);
  }
}

void print_products(Device& device) {
  const std::vector<OpKey> keys = {
      {OpKind::kMatmul, DType::kFloat32, 0, {1, 64, 64, 64}},
      {OpKind::kMatmul, DType::kFloat32, kTransposeB, {16, 128, 128, 64}},
      {OpKind::kMatmul, DType::kFloat32, kTransposeB, {1, 512, 512, 512}},
      {OpKind::kMatmul, DType::kFloat32, kTransposeB, {1, 1024, 3072, 1024}},
      {OpKind::kMatmul, DType::kFloat32, 0, {1, 1024, 1024, 3072}},
      {OpKind::kMatmul, DType::kFloat32, kTransposeA | kAccumulate, {1, 3072, 1024, 1024}},
      {OpKind::kMatmul, DType::kBFloat16, kTransposeB, {1, 1024, 3072, 1024}},
      {OpKind::kFlashForward, DType::kFloat32, 0, {2, 512, 8, 8, 64}},
      {OpKind::kFlashBackward, DType::kFloat32, 0, {2, 512, 8, 8, 64}}};
  std::vector<double> rates;
  for (const OpKey& key : keys) {
    const Op op = make_op(device, key, 1);
    rates.push_back(describe(op).flops / op_time(device, op));
  }
  const double best = *std::max_element(rates.begin(), rates.end());
  fmt::print("\n{:<34} {:>9} {:>24}\n", "GEMM", "GFLOP/s", "vs the fastest");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fmt::print("{:<34} {:>9.1f} {:>23.0f}%\n", to_string(keys[i]), rates[i] / 1e9,
               100 * rates[i] / best);
  }
}

// Prints the time and bus bandwidth (as defined by nccl-tests) of all-reduces between two threads.
void print_collectives() {
  fmt::print("\n{:<34} {:>9} {:>9}\n", "all_reduce, 2 threads", "us", "bus GB/s");
  for (const std::int64_t elements : {16, 1024, 16384, 262'144, 4'194'304}) {
    double seconds = 0;
    const Status status = run_on_threads(2, [&](World& world) -> Status {
      TPSIM_TRY(const auto device, CpuDevice::create());
      const auto group = world.communicator(*device, GroupKind::kWorld, {0, 1});
      const Tensor x =
          device->allocate({elements}, DType::kFloat32, MemoryCategory::kWorkspace, "x");
      device->run(Fill{x, 0.0F, kLabel});
      const double mine =
          best_time([&] { group->all_reduce(x, ReduceOp::kSum, kLabel); }, wall_clock);
      if (world.rank() == 0) seconds = mine;
      return Ok{};
    });
    const double bytes = static_cast<double>(elements) * 4;
    if (status) {
      fmt::print("{:<34} {:>9.1f} {:>9.2f}\n", fmt::format("{:.0f} bytes", bytes), seconds * 1e6,
                 bytes / seconds / 1e9);
    }
  }
}

}  // namespace
}  // namespace tpsim

int main() {
  auto device = tpsim::CpuDevice::create();
  if (!device) {
    fmt::print(stderr, "{}\n", to_string(device.error()));
    return 4;
  }
  tpsim::print_streaming(**device);
  tpsim::print_products(**device);
  tpsim::print_collectives();
  return 0;
}
