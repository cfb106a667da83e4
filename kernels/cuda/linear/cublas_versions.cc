// First version of cuBLASLt for each kind of scales of 8-bit operands.
#include <limits>

#include "kernels/cuda/linear/cublas_lt.h"

namespace tpsim {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

#if CUBLAS_VERSION >= 120800
constexpr std::size_t kVectors32 = 120800;
static_assert(static_cast<int>(ScalesOf::kVector32) == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
#else
constexpr std::size_t kVectors32 = kNone;
#endif
#if CUBLAS_VERSION >= 120900
constexpr std::size_t kBlocks128 = 120900;
static_assert(static_cast<int>(ScalesOf::kVector128) == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
static_assert(static_cast<int>(ScalesOf::kTile128) == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
#else
constexpr std::size_t kBlocks128 = kNone;
#endif

}  // namespace

std::size_t least_version(ScalesOf scales) {
  switch (scales) {
    case ScalesOf::kTensor: return 0;
    case ScalesOf::kVector32: return kVectors32;
    case ScalesOf::kVector128:
    case ScalesOf::kTile128: return kBlocks128;
  }
  return kNone;
}

}  // namespace tpsim
