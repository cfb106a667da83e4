// Runs tests on a GPU. Without GPU, prints the reason and returns the exit code with which ctest
// counts the test as skipped.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>

#include "kernels/cuda/linear/cublas_lt.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace {

constexpr int kSkipped = 77;

bool only_lists(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--list", 6) == 0) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list-ops") == 0) {
    for (int i = 0; i < tpsim::kOpKindCount; ++i) {
      std::printf("%s\n", std::string(tpsim::name_of(static_cast<tpsim::OpKind>(i))).c_str());
    }
    return 0;
  }
  if (!only_lists(argc, argv)) {
    const tpsim::GpuCount count = tpsim::visible_gpus();
    std::string reason = count.why_none;
    if (count.gpus > 0 && !tpsim::cublas_lt().ok()) reason = tpsim::cublas_lt().error().message;
    if (!reason.empty()) {
      std::printf("skipped: %s\n", reason.c_str());
      return kSkipped;
    }
  }
  return Catch::Session().run(argc, argv);
}
