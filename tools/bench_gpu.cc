// Times the ops of one block of BLOOM-176B at tensor parallelism 4, and of embedding, head and
// optimizer, on the GPU. Prints one tab-separated line per op: time, bytes/s, share of the copy
// rate measured on this GPU, and TFLOP/s.
//
// Each op rotates over sets of operands that together exceed the L2 cache.
//
// --soak SECONDS: runs GEMMs continuously and prints their TFLOP/s about once per second.
// --beside: runs a GEMM and a kernel of another stream concurrently, with and without priority.
// --attention: compares attention kernels that use warps and Hopper's warpgroups, for several
// shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/median.h"
#include "core/program/op_dims.h"
#include "kernels/checks/op_cases.h"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/delay.h"
#include "kernels/cuda/runtime/gpu_facts.h"
#include "kernels/cuda/runtime/host_costs.h"

namespace tpsim {
namespace {

constexpr DType kDType = DType::kBFloat16;
constexpr auto kFloat = static_cast<std::uint8_t>(DType::kFloat32);
constexpr std::int64_t kTokens = 2048, kHidden = 14336, kTp = 4, kHeads = 112 / kTp, kHeadDim = 128;
constexpr std::int64_t kQkv = 3 * kHidden / kTp, kFfn = 4 * kHidden / kTp, kVocab = 250880 / kTp;
constexpr double kCacheBytes = 256e6;  // several times the largest L2 cache

OpKey key(OpKind kind, int variant, const OpDims& dims) {
  return {kind, kDType, static_cast<std::uint8_t>(variant), dims};
}

// Adds the forward, dgrad and wgrad GEMMs of a linear layer.
void add_linear(std::vector<OpKey>& keys, std::int64_t in, std::int64_t out) {
  keys.push_back(key(OpKind::kMatmul, kTransposeB, {1, kTokens, out, in}));
  keys.push_back(key(OpKind::kMatmul, 0, {1, kTokens, in, out}));
  keys.push_back(
      key(OpKind::kMatmul, kTransposeA | kAccumulate | kOutputFloat32, {1, out, in, kTokens}));
}

std::vector<OpKey> block_ops() {
  std::vector<OpKey> keys;
  for (int norm = 0; norm < 2; ++norm) {
    keys.push_back(key(OpKind::kNormForward, 0, {kTokens, kHidden}));
    keys.push_back(key(OpKind::kNormBackward, 2 | kFloat << 2, {kTokens, kHidden}));
    keys.push_back(key(OpKind::kBiasResidual, 3, {kTokens, kHidden}));
    keys.push_back(key(OpKind::kColumnSum, kFloat, {kTokens, kHidden}));
  }
  add_linear(keys, kHidden, kQkv);
  add_linear(keys, kHidden / kTp, kHidden);
  add_linear(keys, kHidden, kFfn);
  add_linear(keys, kFfn, kHidden);
  keys.push_back(key(OpKind::kBiasResidual, 1, {kTokens, kQkv}));
  keys.push_back(key(OpKind::kColumnSum, kFloat, {kTokens, kQkv}));
  keys.push_back(key(OpKind::kBiasGeluForward, 1, {kTokens, kFfn}));
  keys.push_back(key(OpKind::kBiasGeluBackward, 1, {kTokens, kFfn}));
  keys.push_back(key(OpKind::kColumnSum, kFloat, {kTokens, kFfn}));
  keys.push_back(key(OpKind::kSoftmaxForward, 1, {kHeads, kTokens, kTokens}));
  keys.push_back(key(OpKind::kSoftmaxBackward, 0, {kHeads, kTokens, kTokens}));
  for (int i = 0; i < 2; ++i) {  // attention scores, and dP in backward
    keys.push_back(key(OpKind::kMatmul, kTransposeB, {kHeads, kTokens, kTokens, kHeadDim}));
  }
  for (const int variant : {0, 0, 1, 1}) {  // PV; dV, dQ and dK in backward
    keys.push_back(key(OpKind::kMatmul, variant, {kHeads, kTokens, kHeadDim, kTokens}));
  }
  return keys;
}

std::vector<OpKey> other_ops() {
  return {key(OpKind::kFlashForward, 0, {1, kTokens, kHeads, kHeads, kHeadDim}),
          key(OpKind::kFlashBackward, 0, {1, kTokens, kHeads, kHeads, kHeadDim}),
          key(OpKind::kFlashForward, 1, {1, kTokens, kHeads, kHeads, kHeadDim}),
          key(OpKind::kFlashForward, 0, {1, 8192, kHeads, kHeads, kHeadDim}),
          key(OpKind::kFlashBackward, 0, {1, 8192, kHeads, kHeads, kHeadDim}),
          key(OpKind::kNormForward, 1, {kTokens, kHidden}),
          key(OpKind::kNormForward, 0, {16384, 2048}),
          key(OpKind::kNormBackward, 2 | kFloat << 2, {16384, 2048}),
          key(OpKind::kSwigluForward, 0, {kTokens, kFfn}),
          key(OpKind::kSwigluBackward, 0, {kTokens, kFfn}),
          key(OpKind::kDropoutForward, 3, {kTokens, kHidden}),
          key(OpKind::kDropoutBackward, 0, {kTokens, kHidden}),
          key(OpKind::kRotary, 0, {kTokens, kHeads, kHeadDim}),
          key(OpKind::kEmbeddingForward, 0, {kTokens, kHidden, kVocab}),
          key(OpKind::kEmbeddingBackward, kFloat, {kTokens, kHidden, 4096}),
          key(OpKind::kVocabMax, 0, {kTokens, kVocab}),
          key(OpKind::kVocabSums, 0, {kTokens, kVocab}),
          key(OpKind::kCrossEntropyBackward, 0, {kTokens, kVocab}),
          key(OpKind::kAdamW, kFloat, {50'000'000}),
          key(OpKind::kAdd, kFloat, {50'000'000}),
          key(OpKind::kCast, kFloat, {50'000'000}),
          key(OpKind::kScale, 0, {100'000'000}),
          key(OpKind::kSumSquares, 0, {100'000'000}),
          key(OpKind::kMatmul, kTransposeB, {1, 8192, 8192, 8192})};
}

struct Timed {
  double seconds = 0;
  OpRecord record;
};

// Returns the median time of an op over rotating sets of operands.
Timed timed(Device& device, const OpKey& op_key) {
  constexpr int kRuns = 15;
  std::vector<Op> sets{make_op(device, op_key, 1)};
  const OpRecord record = describe(sets[0]);
  const auto wanted =
      static_cast<std::size_t>(std::clamp(2 * kCacheBytes / record.bytes, 1.0, 16.0));
  while (sets.size() < wanted) sets.push_back(make_op(device, op_key, sets.size() + 1));
  const auto run = [&](std::size_t i) { device.run(sets[i % sets.size()]); };
  for (std::size_t i = 0; i < 3 + sets.size(); ++i) run(i);
  std::vector<DeviceMark> marks{device.mark()};
  for (int i = 0; i < kRuns; ++i) {
    run(static_cast<std::size_t>(i));
    marks.push_back(device.mark());
  }
  std::vector<double> times;
  for (std::size_t i = 1; i < marks.size(); ++i) {
    times.push_back(device.seconds_between(marks[i - 1], marks[i]));
  }
  device.forget_marks();
  return {upper_median(std::move(times)), record};
}

class Table {
 public:
  explicit Table(CudaDevice& device) : device_(device) {
    const OpKey copy{OpKind::kCopy, kDType, 0, {500'000'000}};
    copy_rate_ = 2e9 / timed(device_, copy).seconds;
    fmt::print("op\tmicroseconds\tGB/s\tshare of copy rate\tTFLOP/s\n");
    fmt::print("copy\t{:.1f}\t{:.0f}\t1.000\t0\n", 2e15 / copy_rate_, copy_rate_ * 1e-9);
  }

  // Prints a line per op. Returns the total time of all ops in seconds.
  double print(const std::vector<OpKey>& keys) {
    double total = 0;
    for (const OpKey& one : keys) {
      const auto [seconds, record] = timed(device_, one);
      fmt::print("{} variant {}\t{:.1f}\t{:.0f}\t{:.3f}\t{:.1f}\n", to_string(one),
                 int{one.variant}, seconds * 1e6, record.bytes / seconds * 1e-9,
                 record.bytes / seconds / copy_rate_, record.flops / seconds * 1e-12);
      std::fflush(stdout);
      total += seconds;
    }
    return total;
  }

 private:
  CudaDevice& device_;
  double copy_rate_ = 0;
};

void print_machine(CudaDevice& device) {
  const HostCosts costs = host_costs(device);
  const DriverMemory driver = driver_memory();
  fmt::print("host time of a launch, us\t{:.2f}\t\t\t\n", costs.launch_s * 1e6);
  fmt::print("host to device, GB/s\t\t{:.1f}\t\t\n", costs.upload_bytes_per_s * 1e-9);
  fmt::print("device to host, GB/s\t\t{:.1f}\t\t\n", costs.download_bytes_per_s * 1e-9);
  fmt::print("peak of bytes reserved\t\t{}\t\t\n", device.memory().peak_reserved_bytes());
  fmt::print("peak of bytes used\t\t{}\t\t\n", device.memory().peak_used_bytes());
  fmt::print("bytes reserved\t\t{}\t\t\n", device.memory().reserved_bytes());
  fmt::print("bytes in use according to the driver\t\t{}\t\t\n", driver.used);
}

Status soak(double seconds) {
  TPSIM_TRY(const auto device, CudaDevice::create());
  const Op product = make_op(*device, key(OpKind::kMatmul, kTransposeB, {1, 8192, 8192, 8192}), 1);
  const double flops = describe(product).flops;
  const DeviceMark begin = device->mark();
  fmt::print("second\tTFLOP/s\n");
  for (double at = 0; at < seconds;) {
    constexpr int kProducts = 400;  // about as many as an H100 runs in a second
    for (int i = 0; i < kProducts; ++i) device->run(product);
    const double now = device->seconds_between(begin, device->mark());
    fmt::print("{:.2f}\t{:.1f}\n", now, kProducts * flops / (now - at) * 1e-12);
    std::fflush(stdout);
    at = now;
  }
  return Ok{};
}

// Attention shapes: many heads, grouped-query attention, few heads, and a single head (too few
// thread blocks to fill the GPU).
constexpr std::array kAttentionShapes = {OpDims{1, 2048, 28, 28, 128}, OpDims{1, 8192, 28, 28, 128},
                                         OpDims{1, 2048, 28, 28, 64},  OpDims{1, 2048, 32, 32, 128},
                                         OpDims{4, 2048, 16, 16, 128}, OpDims{1, 8192, 32, 8, 128},
                                         OpDims{2, 4096, 32, 8, 128},  OpDims{1, 4096, 8, 1, 128},
                                         OpDims{1, 8192, 8, 1, 128},   OpDims{1, 2048, 1, 1, 128}};

// Prints attention times with warpgroup kernels, or with warp kernels.
Status print_attention(bool by_warpgroups) {
  setenv("TPSIM_HOPPER_ATTENTION", by_warpgroups ? "1" : "0", 1);
  TPSIM_TRY(const auto device, CudaDevice::create());
  for (const OpDims& dims : kAttentionShapes) {
    for (const OpKind kind : {OpKind::kFlashForward, OpKind::kFlashBackward}) {
      const auto [seconds, record] = timed(*device, key(kind, 0, dims));
      fmt::print("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.1f}\t{:.1f}\n", name_of(kind),
                 dim_of(record.key, FlashDim::kBatch), dim_of(record.key, FlashDim::kQueries),
                 dim_of(record.key, FlashDim::kHeads), dim_of(record.key, FlashDim::kKeyHeads),
                 dim_of(record.key, FlashDim::kWidth), by_warpgroups ? "warpgroups" : "warps",
                 seconds * 1e6, record.flops / seconds * 1e-12);
      std::fflush(stdout);
    }
  }
  return Ok{};
}

Status compare_attention() {
  fmt::print("op\tbatch\tseq\theads\tkv heads\thead_dim\tkernels\tmicroseconds\tTFLOP/s\n");
  TPSIM_TRY_STATUS(print_attention(false));
  return print_attention(true);
}

// Measures the overlap of a BLOOM-176B wgrad GEMM with a kernel on another stream. Both become
// ready at the same time. The kernel imitates an NCCL collective: 24 blocks of 640 threads that run
// for kPassed seconds. Prints when both have ended, and when the kernel has ended.
Status print_beside() {
  constexpr double kPassed = 270e-6;
  TPSIM_TRY(const auto device, CudaDevice::create());
  const Op before = make_op(*device, key(OpKind::kMatmul, kTransposeB, {1, 4096, 4096, 4096}), 1);
  const Op product = make_op(
      *device, key(OpKind::kMatmul, kTransposeA | kOutputFloat32, {1, kFfn, kHidden, kTokens}), 2);
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities");
  fmt::print(
      "stream\tmultiprocessors spared\tGEMM alone us\tboth us\tother kernel ended after us\n");
  for (const int priority : {least, greatest}) {
    for (const int spared : {0, 8, 16, 24, 32}) {
      cudaStream_t other = nullptr;
      check_cuda(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, priority), "a stream");
      std::array<cudaEvent_t, 4> events{};  // ready, product ended, other ended, both ended
      for (cudaEvent_t& event : events) check_cuda(cudaEventCreate(&event), "an event");
      const auto [ready, product_ended, other_ended, all_ended] = events;
      const auto milliseconds = [&](cudaEvent_t from, cudaEvent_t to) {
        float time = 0;
        check_cuda(cudaEventElapsedTime(&time, from, to), "a time");
        return double{time};
      };
      device->spare_multiprocessors(spared);
      std::vector<double> alone, both, of_other;
      for (int run = 0; run < 12; ++run) {
        const bool beside = run % 2 == 1;
        device->delay(2e-4);
        device->run(before);
        check_cuda(cudaEventRecord(ready, device->stream()), "an event");
        if (beside) {
          check_cuda(cudaStreamWaitEvent(other, ready, 0), "a wait");
          delay_stream(kPassed, other, 24, 640);
          check_cuda(cudaEventRecord(other_ended, other), "an event");
        }
        device->run(product);
        check_cuda(cudaEventRecord(product_ended, device->stream()), "an event");
        if (beside) check_cuda(cudaStreamWaitEvent(device->stream(), other_ended, 0), "a wait");
        check_cuda(cudaEventRecord(all_ended, device->stream()), "an event");
        device->synchronize();
        if (run < 2) continue;  // warm-up: selects algorithms, loads kernels
        (beside ? both : alone).push_back(milliseconds(ready, all_ended) * 1e3);
        if (beside) of_other.push_back(milliseconds(ready, other_ended) * 1e3);
      }
      fmt::print("{}\t{}\t{:.1f}\t{:.1f}\t{:.1f}\n", priority == least ? "normal" : "first", spared,
                 upper_median(alone), upper_median(both), upper_median(of_other));
      std::fflush(stdout);
      device->spare_multiprocessors(-spared);
      for (const cudaEvent_t event : events) static_cast<void>(cudaEventDestroy(event));
      static_cast<void>(cudaStreamDestroy(other));
    }
  }
  return Ok{};
}

Status run() {
  TPSIM_TRY(const auto device, CudaDevice::create());
  Table table(*device);
  const double block = table.print(block_ops());
  fmt::print("sum of the block's ops, forward and backward, unfused attention\t{:.1f}\t\t\t\n",
             block * 1e6);
  table.print(other_ops());
  print_machine(*device);
  return Ok{};
}

}  // namespace
}  // namespace tpsim

int main(int argc, char** argv) {
  const std::string_view way = argc > 1 ? argv[1] : "";
  tpsim::Status status = tpsim::Ok{};
  if (argc == 1) {
    status = tpsim::run();
  } else if (argc == 3 && way == "--soak") {
    status = tpsim::soak(std::atof(argv[2]));
  } else if (argc == 2 && way == "--attention") {
    status = tpsim::compare_attention();
  } else if (argc == 2 && way == "--beside") {
    status = tpsim::print_beside();
  } else {
    fmt::print(stderr, "usage: {} [--soak SECONDS | --attention | --beside]\n", argv[0]);
    return 2;
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", to_string(status.error()));
  return static_cast<int>(status.error().kind);
}
