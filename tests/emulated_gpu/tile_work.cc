// Counts shared memory accesses of the attention kernels per tensor-core instruction, on the
// emulated GPU. mma: m16n8k16, 2048 multiply-adds; ldmatrix: four matrices, 512 bytes, four clocks
// of an SM's shared memory; wgmma: 64 rows, depth 16. Writes a Markdown table.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "kernels/checks/op_cases.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "tests/emulated_gpu/counts.h"

namespace tpsim {
namespace {

constexpr std::int64_t kPositions = 512;

// Prints one row of the table.
void print(CudaDevice& device, const char* what, OpKind kind, std::int64_t head_dim) {
  const Op op = make_op(device, {kind, DType::kBFloat16, 0, {1, kPositions, 1, 1, head_dim}}, 5);
  device.synchronize();
  const emulated::Counts before = emulated::counts();
  device.run(op);
  device.synchronize();
  const emulated::Counts after = emulated::counts();
  const std::int64_t products = after.tile_products - before.tile_products;
  const std::int64_t loads = after.fragment_loads - before.fragment_loads;
  const std::int64_t by_four = after.warpgroup_products - before.warpgroup_products;
  fmt::print("| {} | {} | {} | {} | {} | {} |\n", what, head_dim, products, loads,
             products == 0 ? std::string("-")
                           : fmt::format("{:.2f}", 4.0 * static_cast<double>(loads) /
                                                       static_cast<double>(products)),
             by_four / 4);
}

Status run() {
  fmt::print(
      "| attention of {0} x {0} | head_dim | mma | ldmatrix | clocks of ldmatrix for an mma | "
      "wgmma |\n"
      "|---|---|---|---|---|---|\n",
      kPositions);
  for (const std::int64_t head_dim : {64, 128}) {
    setenv("TPSIM_HOPPER_ATTENTION", "0", 1);
    TPSIM_TRY(const auto by_warps, CudaDevice::create());
    print(*by_warps, "forward", OpKind::kFlashForward, head_dim);
    setenv("TPSIM_HOPPER_ATTENTION", "1", 1);
    TPSIM_TRY(const auto by_warpgroups, CudaDevice::create());
    print(*by_warpgroups, "forward by warpgroups", OpKind::kFlashForward, head_dim);
    print(*by_warps, "backward", OpKind::kFlashBackward, head_dim);
    if (head_dim == 64) continue;  // uses warps too
    print(*by_warpgroups, "backward by warpgroups", OpKind::kFlashBackward, head_dim);
  }
  return Ok{};
}

}  // namespace
}  // namespace tpsim

int main() {
  const tpsim::Status status = tpsim::run();
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", to_string(status.error()));
  return static_cast<int>(status.error().kind);
}
