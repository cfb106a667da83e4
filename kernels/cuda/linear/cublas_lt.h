// The functions of cuBLASLt that tpsim calls, loaded at run time.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "core/base/result.h"
#include "kernels/cuda/linear/matmul_choice.h"
#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {

// Pairs of CublasLt member and cuBLASLt function.
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
  std::string path;  // path of the library
};

// Returns the first version of cuBLASLt that supports this kind of scales, in the encoding of
// version(). If the headers of this build lack the kind, no version suffices: returns the maximum.
std::size_t least_version(ScalesOf scales);

// Opens the library once per process. Error kMissing lists the searched paths.
const Result<CublasLt>& cublas_lt();

}  // namespace tpsim
