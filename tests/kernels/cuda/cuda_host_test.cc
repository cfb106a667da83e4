// Host-side functions of the CUDA device: loading libraries, texts of algorithms.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "kernels/cuda/linear/matmul_8_bits.h"
#include "kernels/cuda/linear/matmul_choice.h"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/kernel_trace.h"
#include "kernels/cuda/runtime/recorded_work.h"
#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {

TEST_CASE("a missing library is an error with the searched folders") {
  setenv("TPSIM_LIBRARY_PATH", "/nowhere/one:/nowhere/two", 1);
  const auto library = SharedLibrary::open("The Library", {"libtpsim-absent.so.3"});
  unsetenv("TPSIM_LIBRARY_PATH");
  REQUIRE_FALSE(library.ok());
  CHECK(library.error().kind == ErrorKind::kMissing);
  for (const char* part : {"The Library", "libtpsim-absent.so.3", "/nowhere/one", "/nowhere/two",
                           "/usr/local/cuda/lib64"}) {
    CHECK_THAT(library.error().message, Catch::Contains(part));
  }
}

TEST_CASE("a library gives its functions, and a missing function is an error") {
  const auto library = SharedLibrary::open("the C library", {"libc.so.6"});
  REQUIRE(library.ok());
  int (*absolute)(int) = nullptr;
  REQUIRE(library->find("abs", absolute).ok());
  CHECK(absolute(-3) == 3);
  const Status missing = library->find("tpsim_has_no_such_function", absolute);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind == ErrorKind::kMissing);
}

TEST_CASE("a machine without a GPU is an error that starts with no GPU") {
  const GpuCount count = visible_gpus();
  if (count.gpus > 0) return;  // tests with the label gpu cover this machine
  CHECK_FALSE(count.why_none.empty());
  const auto device = CudaDevice::create();
  REQUIRE_FALSE(device.ok());
  CHECK(device.error().kind == ErrorKind::kMissing);
  CHECK_THAT(device.error().message, Catch::StartsWith("no GPU: "));
}

TEST_CASE("a failure of CUDA names the host and the GPU on its bus") {
  if (visible_gpus().gpus == 0) return;
  const auto device = CudaDevice::create();
  REQUIRE(device.ok());
  CHECK_THROWS_WITH(
      check_cuda(cudaErrorInvalidValue, "a copy"),
      Catch::StartsWith("a copy: ") && Catch::Contains(", GPU 0000:") && Catch::Contains(" of "));
}

TEST_CASE("repeated work is recorded after the warm-up, and again when its memory changes") {
  using Action = RepeatPlan::Action;
  RepeatPlan plan;
  int a = 0, b = 0;
  const RecordKey here{{&a}, 0}, there{{&b}, 0}, freed{{&a}, 1}, fuller{{&a}, 1, 512};
  for (int turn = 0; turn < RepeatPlan::kWarmUp; ++turn) CHECK(plan.next(here) == Action::kIssue);
  CHECK(plan.next(here) == Action::kRecord);
  CHECK(plan.next(here) == Action::kReplay);
  CHECK(plan.next(there) == Action::kRecord);
  CHECK(plan.next(here) == Action::kRecord);
  CHECK(plan.next(here) == Action::kReplay);
  CHECK(plan.next(freed) == Action::kRecord);
  CHECK(plan.next(fuller) == Action::kRecord);
  CHECK(plan.next(fuller) == Action::kReplay);
}

TEST_CASE(
    "the launch gap is the median of what lies between kernels, beside the median of their "
    "lengths") {
  const LaunchGap gap = launch_gap_of({{0, 100}, {400, 2400}, {2900, 4900}, {4800, 6900}});
  CHECK(gap.kernel_s == Approx(2e-6));
  CHECK(gap.gap_s == Approx(300e-9));  // median of 300, 500 and an overlap
  CHECK(launch_gap_of({{0, 100}}).kernel_s == 0);
}

TEST_CASE("a missing NVML is an error with a message") {
  if (visible_gpus().gpus > 0) return;
  const auto watch = SharedLibrary::open("NVML", {"libnvidia-ml.so.1"});
  if (watch.ok()) return;  // a driver without its GPU
  CHECK_THAT(watch.error().message, Catch::StartsWith("NVML is not installed"));
}

TEST_CASE("the choice of an algorithm is unchanged by writing and reading") {
  MatmulChoice choice;
  choice.key = {DType::kBFloat16, DType::kFloat32,   true, false, true, {1, 4096, 10752, 14336},
                {5, 6, 7},        {0, 1LL << 40, 3}, 16};
  choice.algorithm = {1, 0xffffffffffffffffULL, 0, 3, 4, 5, 6, 7};
  choice.workspace = 1 << 20;
  const auto check_read = [&] {
    const auto read = parse_matmul_choice(to_text(choice));
    REQUIRE(read.ok());
    CHECK(*read == choice);
  };
  check_read();
  choice.key.dtype = DType::kFloat8;
  check_read();
  choice.key.a_is_e5m2 = true;
  check_read();
  choice.key.scales = {ScalesOf::kVector128, ScalesOf::kTile128};
  check_read();
  choice.key.accumulates = false;
  check_read();
}

TEST_CASE(
    "recipes of 8 bits are refused with the GPU's capability and the nearest supported recipe") {
  const auto reason = [](Precision recipe, int capability, std::size_t library = 130000) {
    return refusal_reason(recipe, {"A GPU", capability, library});
  };
  for (const Precision recipe : {Precision::kFp8, Precision::kFp8Current}) {
    for (const int capability : {89, 90, 100, 120}) CHECK(reason(recipe, capability, 110000) == "");
    CHECK(reason(recipe, 80)
              .find("compute capability 8.0, and GEMMs of 8 bits by " +
                    std::string(name_of(recipe)) + " need 8.9 or newer") != std::string::npos);
  }
  CHECK(reason(Precision::kFp8Block, 90).empty());
  CHECK(reason(Precision::kFp8Block, 100) ==
        "A GPU has compute capability 10.0, and GEMMs of 8 bits by fp8-block need exactly 9.0; the "
        "nearest supported recipe is mxfp8");
  CHECK(reason(Precision::kFp8Block, 89).ends_with("the nearest supported recipe is fp8-current"));
  CHECK(reason(Precision::kFp8Block, 90, 120803) ==
        "the installed cuBLASLt is 12.8, but such GEMMs need 12.9 or newer; the nearest supported "
        "recipe is fp8-current");
  CHECK(reason(Precision::kMxFp8, 100).empty());
  CHECK(reason(Precision::kMxFp8, 90)
            .ends_with("by mxfp8 need 10.0 or newer; the nearest supported recipe is fp8-block"));
  CHECK(reason(Precision::kMxFp8, 100, 120405).find("the installed cuBLASLt is 12.4") == 0);
  CHECK(reason(Precision::kNvFp4, 100) ==
        "tpsim can predict this recipe, but cannot run it; the nearest supported recipe is mxfp8");
}

TEST_CASE("an invalid algorithm text is an error that repeats it") {
  for (const char* text : {"", "nn bf16", "xn bf16 bf16 1 2 3 4 1 1 1 0 0 0 256 0 0 0 0 0 0 0 0 0",
                           "nn bf16 int8 1 2 3 4 1 1 1 0 0 0 256 0 0 0 0 0 0 0 0 0",
                           "nn bf16 bf16 1 2 3 z 1 1 1 0 0 0 256 0 0 0 0 0 0 0 0 0"}) {
    const auto read = parse_matmul_choice(text);
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(read.error().message, Catch::Contains(text));
  }
}

}  // namespace tpsim
