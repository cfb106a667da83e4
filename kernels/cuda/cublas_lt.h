// The functions of cuBLASLt that tpsim calls, found at run time.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

#include "core/result.h"
#include "kernels/cuda/matmul_choice.h"

namespace tpsim {

struct CublasLt {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtGetVersion) version = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmulAlgoCheck) check = nullptr;
  decltype(&::cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  std::string path;  // of the library
};

// The version of cuBLASLt from which on it has such scales, as its version() says it; above all of
// them where the headers of this build do not know them.
std::size_t least_version(ScalesOf scales);

// Opened once per process; kMissing says where it was looked for.
const Result<CublasLt>& cublas_lt();

}  // namespace tpsim
