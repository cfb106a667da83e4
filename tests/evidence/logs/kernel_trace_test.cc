// Traces in the format of torch.profiler, with kernel names of its libraries.
#include "evidence/logs/kernel_trace.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace tpsim {
namespace {

std::string event(const char* category, const std::string& name, double begin, double length,
                  int device = 0) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {},)"
      R"( "args": {{"device": {}, "stream": 7, "grid": [1, 2, 3]}}}})",
      category, name, begin, length, device);
}

std::string trace_of(const std::vector<std::string>& events) {
  std::string text =
      "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
      "H100\"}],\n"
      "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 16},\n"
      "  \"traceEvents\": [\n";
  for (const std::string& one : events) text += (&one == &events.front() ? "" : ",\n") + one;
  return text + "\n],\n  \"traceName\": \"it.json\"\n}\n";
}

// Two steps of 100 us: 40 us of GEMMs, 20 us of attention, 10 us of norms, 5 us of copies, and 20
// us of collectives, half of them overlapped with GEMMs. The remaining 15 us are idle.
std::vector<std::string> two_steps() {
  std::vector<std::string> events;
  for (const double at : {1000.0, 1100.0}) {
    const int number = at > 1000 ? 8 : 7;
    events.push_back(event("user_annotation", fmt::format("ProfilerStep#{}", number), at, 100));
    events.push_back(event("cpu_op", "aten::mm {not a kernel}", at, 3));
    events.push_back(
        event("kernel", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64", at, 40));
    events.push_back(event("kernel", "void flash::flash_fwd_kernel<Flash_fwd_traits<128>>(params)",
                           at + 40, 20));
    events.push_back(event("kernel", "void (anonymous)::rms_norm_kernel<float>", at + 60, 10));
    events.push_back(event(
        "kernel", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        at + 30, 10));
    events.push_back(event("kernel",
                           "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                           at + 70, 10));
    events.push_back(event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", at + 80, 5));
  }
  return events;
}

}  // namespace

TEST_CASE("a trace's kernels are summed by class, with exposed collectives") {
  const std::string text = trace_of(two_steps());
  REQUIRE(is_kernel_trace(text));
  const KernelTimes times = read_kernel_trace(text, "it.json").value();
  CHECK(times.gpus == 16);
  CHECK(times.rank == 3);
  CHECK(times.steps.size() == 2);
  const auto is = [](Seconds time, double us) { return time.value() == Approx(us * 1e-6); };
  CHECK(is(times.step, 100));
  CHECK(is(times[KernelClass::kProducts], 40));
  CHECK(is(times[KernelClass::kAttention], 20));
  CHECK(is(times[KernelClass::kOthers], 10));
  CHECK(is(times[KernelClass::kCopies], 5));
  CHECK(is(times[KernelClass::kCollectives], 20));
  CHECK(is(times.exposed, 10));
  CHECK(is(times.idle, 15));
  REQUIRE(times.collectives.size() == 2);
  CHECK(times.collectives[0].name == "AllGather");
  CHECK(times.collectives[1].name == "ReduceScatter");
  CHECK(times.collectives[0].calls == 1);
}

TEST_CASE("kernels that run past the end of a step are averaged over the steps") {
  std::vector<std::string> events;
  for (int i = 0; i < 4; ++i) {
    const double at = 1000 + 100 * i;
    events.push_back(event("user_annotation", fmt::format("ProfilerStep#{}", i), at, 100));
    events.push_back(event("kernel", "nvjet_tst_128x256", at - 30, 60));  // 30 us early
  }
  const KernelTimes times = read_kernel_trace(trace_of(events), "it.json").value();
  CHECK(times[KernelClass::kProducts].value() == Approx(60e-6).epsilon(0.3));
  CHECK(times.step.value() == Approx(100e-6));
}

TEST_CASE("with marks of the device, gaps between steps count as idle") {
  std::vector<std::string> events;
  for (int i = 0; i < 3; ++i) {
    const double at = 1000 + 100 * i;
    events.push_back(event("gpu_user_annotation", fmt::format("ProfilerStep#{}", i), at, 70));
    events.push_back(event("kernel", "cutlass_80_gemm", at, 70));
  }
  const KernelTimes times = read_kernel_trace(trace_of(events), "it.json").value();
  CHECK(times.steps.size() == 2);
  CHECK(times.step.value() == Approx(100e-6));
  CHECK(times.idle.value() == Approx(30e-6));
}

TEST_CASE("kernels are classified by the names of their libraries") {
  for (const char* name :
       {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "nvjet_hsh_256x128_64x4_1x2",
        "cutlass::Kernel2<cutlass_80_tensorop_bf16>", "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32",
        "void cublasLt::splitKreduce_kernel"}) {
    CAPTURE(name);
    CHECK(class_of_kernel(name) == KernelClass::kProducts);
  }
  for (const char* name : {"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
                           "fmha_cutlassF_bf16_aligned_64x128_rf_sm80",
                           "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma"}) {
    CAPTURE(name);
    CHECK(class_of_kernel(name) == KernelClass::kAttention);
  }
  CHECK(class_of_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)") ==
        KernelClass::kCollectives);
  CHECK(class_of_kernel("void at::native::vectorized_elementwise_kernel<4>") ==
        KernelClass::kOthers);
}

TEST_CASE("a trace without a rank's steps is refused with what is missing") {
  const auto error = [](const std::vector<std::string>& events) {
    const auto times = read_kernel_trace(trace_of(events), "it.json");
    return times.ok() ? std::string() : to_string(times.error());
  };
  CHECK_THAT(error({event("cpu_op", "aten::mm", 0, 1)}), Catch::Contains("without GPU kernels"));
  CHECK_THAT(error({event("kernel", "gemm", 0, 1)}), Catch::Contains("call prof.step()"));
  CHECK_THAT(error({event("user_annotation", "ProfilerStep#1", 0, 9), event("kernel", "gemm", 0, 1),
                    event("kernel", "gemm", 2, 1, 1)}),
             Catch::Contains("2 devices"));
  CHECK_THAT(
      error({event("user_annotation", "ProfilerStep#1", 0, 0), event("kernel", "gemm", 0, 1)}),
      Catch::Contains("steps of zero length"));
  std::string cut = trace_of(two_steps());
  cut.resize(cut.size() - 120);
  const auto broken = read_kernel_trace(cut, "it.json");
  REQUIRE_FALSE(broken.ok());
  CHECK_THAT(broken.error().message, Catch::Contains("middle of an event"));
  CHECK_FALSE(is_kernel_trace("iteration 1: loss 3"));
}

}  // namespace tpsim
