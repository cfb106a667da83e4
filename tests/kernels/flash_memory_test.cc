#include "kernels/flash_memory.h"

#include <catch2/catch.hpp>

namespace tpsim {

TEST_CASE("sums of dq need at most a GEMM workspace, but at least two units") {
  constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;
  const FlashMemory few = flash_backward_memory({1, 2048, 28, 28, 128});
  CHECK(few.slots == 28);
  CHECK(few.bytes < kWorkspace);
  const FlashMemory many = flash_backward_memory({4, 2048, 16, 16, 128});
  CHECK(many.slots == 22);  // 31 fit, one MiB each, so there are three rounds of up to 22
  CHECK(many.bytes <= kWorkspace);
  const FlashMemory long_ones = flash_backward_memory({1, 65536, 8, 1, 128});
  CHECK(long_ones.slots == 2);  // all units
  CHECK(long_ones.bytes > 8 * kWorkspace);
  CHECK(flash_backward_memory({1, 65536, 32, 4, 128}).slots == 2);
  CHECK(flash_backward_memory({1, 65536, 8, 1, 64}).bytes < 7 * kWorkspace);
}

TEST_CASE("a group of query heads is divided if there are few blocks of keys") {
  CHECK(flash_backward_memory({1, 2048, 32, 32, 128}).parts == 1);  // no group
  CHECK(flash_backward_memory({1, 32768, 32, 8, 128}).parts == 1);
  CHECK(flash_backward_memory({1, 8192, 32, 8, 128}).parts == 2);
  const FlashMemory one_head = flash_backward_memory({1, 4096, 8, 1, 128});
  CHECK(one_head.parts == 8);
  CHECK(one_head.bytes - one_head.partials == 2 * 8 * 4096 * 128 * 4);  // dk and dv, fp32
  CHECK(flash_backward_memory({1, 4096, 7, 1, 128}).parts == 7);
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
