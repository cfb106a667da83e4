// What attention's kernels ask of shared memory for each product of tensor cores, counted on the
// emulated GPU. mma: m16n8k16, 2048 multiply-adds; ldmatrix: of four matrices, 512 bytes, four
// clocks of a multiprocessor's shared memory. Writes a table in Markdown.
#include <fmt/format.h>

#include "kernels/cuda/cuda_device.h"
#include "kernels/op_cases.h"
#include "tests/emulated_gpu/counts.h"

namespace tpsim {
namespace {

constexpr std::int64_t kPositions = 512;

Status run() {
  TPSIM_TRY(const auto device, CudaDevice::create());
  fmt::print(
      "| attention of {0} x {0} | head_dim | mma | ldmatrix | clocks of ldmatrix for an mma |\n"
      "|---|---|---|---|---|\n",
      kPositions);
  for (const std::int64_t head_dim : {64, 128}) {
    for (const OpKind kind : {OpKind::kFlashForward, OpKind::kFlashBackward}) {
      const Op op =
          make_op(*device, {kind, DType::kBFloat16, 0, {1, kPositions, 1, 1, head_dim}}, 5);
      device->synchronize();
      const emulated::Counts before = emulated::counts();
      device->run(op);
      device->synchronize();
      const emulated::Counts after = emulated::counts();
      const std::int64_t products = after.tile_products - before.tile_products;
      const std::int64_t loads = after.fragment_loads - before.fragment_loads;
      fmt::print("| {} | {} | {} | {} | {:.2f} |\n",
                 kind == OpKind::kFlashForward ? "forward" : "backward", head_dim, products, loads,
                 4.0 * static_cast<double>(loads) / static_cast<double>(products));
    }
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
