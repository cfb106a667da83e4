// Faults that the emulated GPU must detect.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/checks/op_cases.h"
#include "kernels/cuda/linear/cublas_lt.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "tests/emulated_gpu/device_words.h"

namespace tpsim::emulated {
namespace {

cudaStream_t stream_of_test() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

template <class T>
T* on_gpu_memory(std::size_t count) {
  void* data = nullptr;
  REQUIRE(cudaMalloc(&data, count * sizeof(T)) == cudaSuccess);
  return static_cast<T*>(data);
}

template <class T>
std::vector<T> downloaded(const T* from, std::size_t count, cudaStream_t stream) {
  std::vector<T> values(count);
  REQUIRE(cudaMemcpyAsync(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return values;
}

// Returns the last output of a process that runs `grid` and ends.
template <class Kernel>
std::string last_words(const Grid& grid, Kernel kernel) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);  // without the test framework's handler
    run_grid(grid, kernel);
    _exit(0);
  }
  close(ends[1]);
  std::string words(4096, '\0');
  std::size_t length = 0;
  for (ssize_t n = 1; n > 0; length += static_cast<std::size_t>(n)) {
    n = read(ends[0], words.data() + length, words.size() - length);
    if (n < 0) break;
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  words.resize(length);
  return WIFSIGNALED(status) ? words : "ended well: " + words;
}

}  // namespace

TEST_CASE("blocks that wait for others continue when the condition holds") {
  constexpr int kBlocks = 40;
  int begun = 0, ended = 0;
  std::vector<int> order;
  run_grid({{kBlocks}, {64}, 0}, [&] {
    int& number = block_variable<int>([] {});
    if (threadIdx.x == 0) number = begun++;
    __syncthreads();
    let_others_go();
    while (ended < number) wait_for_others();
    __syncthreads();
    if (threadIdx.x != 0) return;
    order.push_back(number);
    ++ended;
    tell_others();
  });
  std::vector<int> expected(kBlocks);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
}

TEST_CASE("blocks that wait for a block that cannot begin end with a message") {
  int begun = 0;
  const std::string words = last_words({{40}, {32}, 0}, [&] {
    int& number = block_variable<int>([] {});
    if (threadIdx.x == 0) number = begun++;
    __syncwarp();
    while (begun < 40) wait_for_others();
  });
  CHECK(words.find("all blocks that have begun wait for others") != std::string::npos);
}

// Bits of dq, dk and dv.
std::vector<std::vector<std::byte>> gradients_on(const char* by_warpgroups, bool waits) {
  setenv("TPSIM_HOPPER_ATTENTION", by_warpgroups, 1);
  const auto device = std::move(CudaDevice::create()).value();
  unsetenv("TPSIM_HOPPER_ATTENTION");
  const Op op =
      make_op(*device, {OpKind::kFlashBackward, DType::kBFloat16, 0, {1, 264, 2, 1, 128}}, 1);
  const auto& flash = std::get<FlashBackward>(op);
  ignore_turns(!waits);
  std::vector<std::vector<std::byte>> all;
  device->run(op);
  device->synchronize();
  for (const Heads* x : {&flash.dq, &flash.dk, &flash.dv}) {
    all.emplace_back(static_cast<std::size_t>(x->tensor.bytes()));
    device->download(x->tensor, all.back());
  }
  ignore_turns(false);
  return all;
}

TEST_CASE("attention's backward without waits for turns is detected") {
  for (const char* by_warpgroups : {"0", "1"}) {
    const auto waited = gradients_on(by_warpgroups, true);
    const bool are_the_same = gradients_on(by_warpgroups, true) == waited;
    const bool are_found_out = gradients_on(by_warpgroups, false) != waited;
    CHECK(are_the_same);
    CHECK(are_found_out);
  }
}

TEST_CASE("every thread of every block runs once, and barriers order shared memory accesses") {
  constexpr unsigned kThreads = 96;
  std::vector<int> runs(5 * 3 * kThreads);
  std::vector<int> sums(5 * 3);
  run_grid({{5, 3}, {8, 12}, 0}, [&] {
    static std::array<int, kThreads> mine;
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    ++runs[block * kThreads + thread];
    mine[thread] = static_cast<int>(thread);
    __syncthreads();
    if (thread == block) sums[block] = std::accumulate(mine.begin(), mine.end(), 0);
  });
  for (const int count : runs) CHECK(count == 1);
  for (const int sum : sums) CHECK(sum == 95 * 96 / 2);
}

TEST_CASE("without a barrier some thread reads old values") {
  int stale = 0;
  run_grid({{20}, {64}, 64 * sizeof(int)}, [&] {
    auto* const shared = reinterpret_cast<int*>(shared_memory());
    shared[threadIdx.x] = 1;
    stale += shared[(threadIdx.x + 1) % blockDim.x] != 1 ? 1 : 0;
  });
  CHECK(stale > 0);
}

TEST_CASE("lanes exchange values, in any order of arrival") {
  std::vector<float> sums(64), firsts(64);
  std::vector<unsigned> votes(64);
  run_grid({{1}, {64}, 0}, [&] {
    float sum = static_cast<float>(threadIdx.x);
    for (int with = 16; with > 0; with /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, with);
    sums[threadIdx.x] = sum;
    firsts[threadIdx.x] = __shfl_sync(0xffffffffU, static_cast<float>(threadIdx.x), 3);
    votes[threadIdx.x] = __ballot_sync(0xffffffffU, threadIdx.x % 4 == 0);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CHECK(sums[i] == (i < 32 ? 496.0F : 496.0F + 1024.0F));
    CHECK(firsts[i] == (i < 32 ? 3.0F : 35.0F));
    CHECK(votes[i] == 0x11111111U);
  }
}

TEST_CASE("a grid that would hang a GPU ends with a message") {
  CHECK(last_words({{1}, {64}, 0}, [] {
          if (threadIdx.x < 32) __syncthreads();
        }).find("ended well") == 0);  // ended threads are not waited for
  CHECK(last_words({{1}, {64}, 0}, [] {
          if (threadIdx.x % 2 == 0) __syncthreads();
          __syncwarp();
        }).find("not all threads of a block or warp") != std::string::npos);
  CHECK(last_words({{1}, {32}, 0}, [] {
          if (threadIdx.x == 7) return;
          __syncwarp();
        }).find("emulated GPU: ") == 0);
  CHECK(last_words({{1}, {32}, 0}, [] {
          if (threadIdx.x < 16) {
            __syncwarp();
          } else {
            __ballot_sync(0xffffffffU, true);
          }
        }).find("lanes of a warp meet at different instructions") != std::string::npos);
}

TEST_CASE("more threads than __launch_bounds__ end with a message") {
  CHECK(last_words({{1}, {32}, 0}, [] { demand_threads(32); }).find("ended well") == 0);
  CHECK(last_words({{1}, {64}, 0}, [] { demand_threads(32); }).find("__launch_bounds__") !=
        std::string::npos);
}

TEST_CASE("streams work as late as possible, in the order of their events") {
  const cudaStream_t first = stream_of_test(), second = stream_of_test();
  int* const data = on_gpu_memory<int>(1);
  void* memory = nullptr;
  REQUIRE(cudaMallocHost(&memory, sizeof(int)) == cudaSuccess);
  auto* const pinned = static_cast<int*>(memory);
  *pinned = 1;
  REQUIRE(cudaMemcpyAsync(data, pinned, sizeof(int), cudaMemcpyHostToDevice, first) == cudaSuccess);
  *pinned = 2;  // too early: the copy has not run yet
  CHECK(downloaded(data, 1, first).front() == 2);

  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  on_gpu([=](int value) { *data = value; }, Launch(1, 1, 0, first))(3);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  on_gpu([=] { *data *= 10; }, Launch(1, 1, 0, second))();
  CHECK(downloaded(data, 1, second).front() == 30);
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(first) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(second) == cudaSuccess);
  REQUIRE(cudaFree(data) == cudaSuccess);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("calls that CUDA refuses return its errors") {
  const cudaStream_t stream = stream_of_test();
  const auto refused = [&](const Launch& launch) {
    on_gpu([] {}, launch)();
    return cudaGetLastError() == cudaErrorInvalidConfiguration;
  };
  CHECK(refused(Launch(0, 32, 0, stream)));
  CHECK(refused(Launch(1, 1025, 0, stream)));
  CHECK(refused(Launch({1, 65536}, 32, 0, stream)));
  CHECK(refused(Launch(1, 32, kSharedMemory + 1, stream)));
  CHECK_FALSE(refused(Launch({1, 65535}, 1, 0, stream)));

  float* const data = on_gpu_memory<float>(4);
  CHECK(std::isnan(downloaded(data, 4, stream).front()));  // uninitialized
  float host = 0;
  CHECK(cudaMemcpyAsync(data, &host, 32, cudaMemcpyHostToDevice, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(&host, &host, 4, cudaMemcpyDeviceToHost, stream) == cudaErrorInvalidValue);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  static_cast<void>(cudaGetLastError());
  REQUIRE(cudaFree(data) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
}

namespace {

// A GEMM of E4M3 matrices, [m, n] = [m, k] [k, n].
struct Narrow {
  std::uint64_t m = 128, n = 128, k = 256;
  std::int32_t first = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  std::int32_t second = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
  std::uintptr_t scales_at = 0x1000;
};

cublasStatus_t asked_for(const Narrow& product) {
  const CublasLt& lt = *cublas_lt();
  cublasLtMatmulDesc_t desc = nullptr;
  REQUIRE(lt.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    REQUIRE(lt.desc_set(desc, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, product.first);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, product.second);
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, reinterpret_cast<const void*>(product.scales_at));
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, reinterpret_cast<const void*>(product.scales_at));
  std::array<cublasLtMatrixLayout_t, 3> layouts{};
  const auto [m, n, k] = std::array{product.m, product.n, product.k};
  lt.layout_create(layouts.data(), CUDA_R_8F_E4M3, k, m, static_cast<std::int64_t>(k));
  lt.layout_create(&layouts[1], CUDA_R_8F_E4M3, k, n, static_cast<std::int64_t>(k));
  lt.layout_create(&layouts[2], CUDA_R_16BF, m, n, static_cast<std::int64_t>(m));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = lt.heuristic(nullptr, desc, layouts[0], layouts[1], layouts[2],
                                             layouts[2], nullptr, 1, &found, &count);
  for (cublasLtMatrixLayout_t layout : layouts) lt.layout_destroy(layout);
  lt.desc_destroy(desc);
  return status;
}

}  // namespace

// Source: cuBLAS documentation, "Narrow Precision Data Types Usage".
TEST_CASE("the emulated cuBLASLt accepts exactly the block scales of the real one") {
  constexpr std::int32_t kTile = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  constexpr std::int32_t kVector = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
  constexpr std::int32_t kVector32 = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  constexpr std::int32_t kScalar = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  CHECK(asked_for({}) == CUBLAS_STATUS_SUCCESS);
  CHECK(asked_for({.first = kVector, .second = kTile}) == CUBLAS_STATUS_SUCCESS);
  CHECK(asked_for({.first = kVector, .second = kVector}) == CUBLAS_STATUS_SUCCESS);
  CHECK(asked_for({.first = kScalar, .second = kScalar}) == CUBLAS_STATUS_SUCCESS);
  const std::vector<Narrow> refused = {
      {.first = kTile, .second = kTile},
      {.first = kScalar, .second = kVector},
      {.first = kVector32, .second = kVector32},  // requires Blackwell
      {.n = 130},                                 // result dimensions must be multiples of 4
      {.m = 132},                                 // result rows must be aligned to 16 bytes
      {.k = 264},
      {.scales_at = 0x1008},  // scales must be aligned to 16 bytes
      {.scales_at = 0},
  };
  for (const Narrow& product : refused) CHECK(asked_for(product) == CUBLAS_STATUS_NOT_SUPPORTED);
}

}  // namespace tpsim::emulated
