// The functions of cuBLASLt that tpsim calls, found at run time.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "core/base/result.h"
#include "kernels/cuda/linear/matmul_choice.h"
#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {

// Names here, and there.
#define TPSIM_CUBLAS_LT_FUNCTIONS(DO)                     \
  DO(create, cublasLtCreate)                              \
  DO(destroy, cublasLtDestroy)                            \
  DO(version, cublasLtGetVersion)                         \
  DO(matmul, cublasLtMatmul)                              \
  DO(heuristic, cublasLtMatmulAlgoGetHeuristic)           \
  DO(check, cublasLtMatmulAlgoCheck)                      \
  DO(desc_create, cublasLtMatmulDescCreate)               \
  DO(desc_destroy, cublasLtMatmulDescDestroy)             \
  DO(desc_set, cublasLtMatmulDescSetAttribute)            \
  DO(layout_create, cublasLtMatrixLayoutCreate)           \
  DO(layout_destroy, cublasLtMatrixLayoutDestroy)         \
  DO(layout_set, cublasLtMatrixLayoutSetAttribute)        \
  DO(preference_create, cublasLtMatmulPreferenceCreate)   \
  DO(preference_destroy, cublasLtMatmulPreferenceDestroy) \
  DO(preference_set, cublasLtMatmulPreferenceSetAttribute)

struct CublasLt {
  TPSIM_CUBLAS_LT_FUNCTIONS(TPSIM_FUNCTION_MEMBER)
  std::string path;  // of the library
};

// The version of cuBLASLt from which on it has such scales, as its version() says it; above all of
// them where the headers of this build do not know them.
std::size_t least_version(ScalesOf scales);

// Opened once per process; kMissing says where it was looked for.
const Result<CublasLt>& cublas_lt();

}  // namespace tpsim
