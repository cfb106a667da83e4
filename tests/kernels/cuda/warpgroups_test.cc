// GEMMs of warpgroups on the emulated GPU. Tiles in the kernels' layout, decoded from the
// descriptors' bits as PTX defines them, give the GEMM of the matrices.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/runtime/descriptors.h"
#include "kernels/cuda/tiles/ptx_hopper.cuh"
#include "tests/emulated_gpu/device_words.h"

namespace tpsim {
namespace {

constexpr int kWarpgroup = 128;

int number(int row, int col, int seed) { return (row * 31 + col * 17 + seed) % 23 - 11; }

// Writes rows x columns to shared memory, starting at `at`.
void put(int at, int rows, int columns, int seed) {
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < columns; ++col) {
      const __nv_bfloat16 value = __float2bfloat16(static_cast<float>(number(row, col, seed)));
      std::memcpy(emulated::shared_memory() + at + panelled(row, col / kChunk, rows) * 16 +
                      col % kChunk * 2,
                  &value, 2);
    }
  }
}

// Row and column of result `i` of a thread, as PTX defines them.
struct Place {
  int row, col;
};
Place place(int thread, int n, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8, n * 8 + thread % 4 * 2 + i % 2};
}

// Returns the sums of all threads after running `thread`, [row][column].
template <int N, class Thread>
std::vector<float> sums_of(Thread thread) {
  std::vector<float> sums(64 * N);
  emulated::run_grid({dim3(1), dim3(kWarpgroup), emulated::kSharedMemory}, [&] {
    float c[N / 8][4];
    thread(c);
    for (int n = 0; n < N / 8; ++n) {
      for (int i = 0; i < 4; ++i) {
        const Place at = place(static_cast<int>(threadIdx.x), n, i);
        sums[static_cast<std::size_t>(at.row * N + at.col)] = c[n][i];
      }
    }
  });
  return sums;
}

// Returns the last output of a process that runs a warpgroup and ends.
template <class Thread>
std::string last_words(Thread thread) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    emulated::run_grid({dim3(1), dim3(kWarpgroup), emulated::kSharedMemory}, thread);
    _exit(0);
  }
  close(ends[1]);
  std::string words(1000, '\0');
  const ssize_t length = read(ends[0], words.data(), words.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return words.substr(0, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
}

}  // namespace

TEST_CASE("warpgroups multiply rows with rows at the addresses of their descriptors") {
  constexpr int kRows = 192, kColumns = 128, kLeft = 0, kRight = kRows * kColumns * 2;
  for (const int first : {0, 64, 128}) {  // row of the left tile
    const std::vector<float> sums = sums_of<128>([first](float(&c)[16][4]) {
      if (threadIdx.x == 0) {
        put(kLeft, kRows, kColumns, 3);
        put(kRight, kRows, kColumns, 8);
      }
      __syncthreads();
      const std::uint64_t a =
          matrix_descriptor(kLeft + static_cast<unsigned>(first) * kPanelRowBytes, 16);
      const std::uint64_t b = matrix_descriptor(kRight, 16);
      begin_products();
      for (int k = 0; k < kColumns / 16; ++k) {
        multiply_rows(c, moved(a, step_along_rows(k, kRows)), moved(b, step_along_rows(k, kRows)),
                      k > 0, __nv_bfloat16{});
      }
      commit_products();
      wait_for_products<0>();
    });
    for (int row = 0; row < 64; ++row) {
      for (int col = 0; col < 128; ++col) {
        int sum = 0;
        for (int k = 0; k < kColumns; ++k) sum += number(first + row, k, 3) * number(col, k, 8);
        if (sums[static_cast<std::size_t>(row * 128 + col)] != static_cast<float>(sum)) {
          FAIL(first << ": " << row << ", " << col);
        }
      }
    }
  }
}

TEST_CASE("warpgroups multiply registers with columns at the addresses of their descriptors") {
  constexpr int kDepth = 48, kColumns = 128;
  const std::vector<float> sums = sums_of<kColumns>([](float(&c)[16][4]) {
    if (threadIdx.x == 0) put(0, kDepth, kColumns, 5);
    __syncthreads();
    std::memset(c, 0, sizeof c);
    unsigned a[kDepth / 16][4];
    const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4;
    for (int k = 0; k < kDepth / 16; ++k) {
      for (int r = 0; r < 4; ++r) {
        for (int i = 0; i < 2; ++i) {
          const int column = k * 16 + thread % 4 * 2 + r / 2 * 8 + i;
          const float value = static_cast<float>(number(row + r % 2 * 8, column, 1));
          const __nv_bfloat16 narrow = __float2bfloat16(value);
          std::memcpy(reinterpret_cast<char*>(&a[k][r]) + 2 * i, &narrow, 2);
        }
      }
    }
    const std::uint64_t b = matrix_descriptor(0, kDepth * kPanelRowBytes);
    begin_products();
    for (int k = 0; k < kDepth / 16; ++k) {
      multiply_depth(c, a[k], moved(b, static_cast<unsigned>(k * 16 * kPanelRowBytes)),
                     __nv_bfloat16{});
    }
    commit_products();
    wait_for_products<0>();
  });
  for (int row = 0; row < 64; ++row) {
    for (int col = 0; col < kColumns; ++col) {
      int sum = 0;
      for (int k = 0; k < kDepth; ++k) sum += number(row, k, 1) * number(k, col, 5);
      if (sums[static_cast<std::size_t>(row * kColumns + col)] != static_cast<float>(sum)) {
        FAIL(row << ", " << col);
      }
    }
  }
}

TEST_CASE("warpgroups multiply columns with columns at the addresses of their descriptors") {
  constexpr int kDepth = 128, kRight = kDepth * kPanelColumns * 2;
  for (const unsigned panel : {0U, 1U}) {  // panel of the right tile's columns
    const std::vector<float> sums = sums_of<64>([panel](float(&c)[8][4]) {
      if (threadIdx.x == 0) {
        put(0, kDepth, kPanelColumns, 4);
        put(kRight, kDepth, 2 * kPanelColumns, 9);
      }
      __syncthreads();
      constexpr unsigned kPanel = kDepth * kPanelRowBytes;
      const std::uint64_t a = matrix_descriptor(0, kPanel);
      const std::uint64_t b = matrix_descriptor(kRight + panel * kPanel, kPanel);
      begin_products();
      for (unsigned k = 0; k < kDepth / 16; ++k) {
        multiply_columns(c, moved(a, k * 16 * kPanelRowBytes), moved(b, k * 16 * kPanelRowBytes),
                         k > 0, __nv_bfloat16{});
      }
      commit_products();
      wait_for_products<0>();
    });
    for (int row = 0; row < 64; ++row) {
      for (int col = 0; col < 64; ++col) {
        const int column = static_cast<int>(panel) * kPanelColumns + col;
        int sum = 0;
        for (int k = 0; k < kDepth; ++k) sum += number(k, row, 4) * number(k, column, 9);
        if (sums[static_cast<std::size_t>(row * 64 + col)] != static_cast<float>(sum)) {
          FAIL(panel << ": " << row << ", " << col);
        }
      }
    }
  }
}

TEST_CASE("invalid wgmma instructions end the emulated GPU with a message") {
  alignas(16) static const std::array<char, 16> kZeros{};
  const auto multiply = [](std::uint64_t descriptor) {
    float c[16][4] = {};
    multiply_rows(c, descriptor, descriptor, false, __nv_bfloat16{});
    commit_products();
    wait_for_products<0>();
  };
  const std::uint64_t right = matrix_descriptor(0, 16);
  CHECK(last_words([&] { multiply(right); }).find("without wgmma.fence") != std::string::npos);
  CHECK(last_words([&] {
          copy_async(emulated::shared_memory() + 16 * threadIdx.x, kZeros.data(), true);
          commit_copies();
          wait_for_copies<0>();
          begin_products();
          multiply(right);
        }).find("without fence.proxy.async") != std::string::npos);
  CHECK(last_words([&] {
          begin_products();
          multiply(right & ~(std::uint64_t{3} << 62U));
        }).find("swizzling") != std::string::npos);
  CHECK(last_words([&] {
          begin_products();
          multiply(matrix_descriptor(emulated::kSharedMemory - 1024, 16));
        }).find("outside") != std::string::npos);
  CHECK(last_words([&] {
          begin_products();
          float c[16][4];
          multiply_rows(c, right, right, false, __nv_bfloat16{});
        }).find("ends before its products") != std::string::npos);
  CHECK(last_words([&] {
          begin_products();
          multiply(right);
        }).empty());
}

TEST_CASE("a wait for a turn that never ends is an error of the emulated GPU") {
  static int turn;
  turn = 0;
  CHECK(last_words([] {
          wait_for_turn(turn_now(&turn, 1));
        }).find("all blocks that have begun wait") != std::string::npos);
  CHECK(last_words([] {
          end_turn(&turn, 1);
          wait_for_turn(turn_now(&turn, 1));
        }).empty());
}

}  // namespace tpsim
