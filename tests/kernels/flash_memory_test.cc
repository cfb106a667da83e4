#include "kernels/flash_memory.h"

#include <catch2/catch.hpp>

namespace tpsim {

TEST_CASE("sums of dq take no more than a workspace of products, and room for one head at least") {
  constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;
  const FlashMemory few = flash_backward_memory({1, 2048, 28, 28, 128});
  CHECK(few.slots == 28);
  CHECK(few.bytes < kWorkspace);
  const FlashMemory many = flash_backward_memory({4, 2048, 16, 16, 128});
  CHECK(many.slots == 31);  // a MiB each, and o . d_o
  CHECK(many.bytes <= kWorkspace);
  const FlashMemory long_ones = flash_backward_memory({1, 65536, 8, 1, 128});
  CHECK(long_ones.slots == 1);
  CHECK(long_ones.bytes > 8 * kWorkspace);
  CHECK(flash_backward_memory({1, 65536, 8, 1, 64}).bytes < 5 * kWorkspace);
}

TEST_CASE("attention without tensor cores keeps no sums") {
  const OpKey key{OpKind::kFlashBackward, DType::kBFloat16, 0, {1, 256, 2, 2, 128}};
  const std::int64_t along = 2 * 256 * 4;
  CHECK(flash_backward_scratch(key) > 2 * 256 * 128 * 4);
  OpKey other = key;
  other.dtype = DType::kFloat32;
  CHECK(flash_backward_scratch(other) == along);
  other = key;
  other.variant = kCapped;
  CHECK(flash_backward_scratch(other) == along);
  other = key;
  other.dims = {1, 256, 2, 2, 128, 256, 64};  // a window
  CHECK(flash_backward_scratch(other) == along);
  other.dims = {1, 256, 2, 2, 256};
  CHECK(flash_backward_scratch(other) == along);
}

}  // namespace tpsim
