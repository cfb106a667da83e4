#include "kernels/cuda/cublas_lt.h"

#include "kernels/cuda/shared_library.h"

namespace tpsim {
namespace {

Result<CublasLt> opened() {
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  TPSIM_TRY(const SharedLibrary library,
            SharedLibrary::open("cuBLASLt", {"libcublasLt.so." + major, "libcublasLt.so"}));
  CublasLt lt;
  lt.path = library.path();
  TPSIM_TRY_STATUS(library.find("cublasLtCreate", lt.create));
  TPSIM_TRY_STATUS(library.find("cublasLtDestroy", lt.destroy));
  TPSIM_TRY_STATUS(library.find("cublasLtGetVersion", lt.version));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmul", lt.matmul));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulAlgoGetHeuristic", lt.heuristic));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulAlgoCheck", lt.check));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulDescCreate", lt.desc_create));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulDescDestroy", lt.desc_destroy));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulDescSetAttribute", lt.desc_set));
  TPSIM_TRY_STATUS(library.find("cublasLtMatrixLayoutCreate", lt.layout_create));
  TPSIM_TRY_STATUS(library.find("cublasLtMatrixLayoutDestroy", lt.layout_destroy));
  TPSIM_TRY_STATUS(library.find("cublasLtMatrixLayoutSetAttribute", lt.layout_set));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulPreferenceCreate", lt.preference_create));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulPreferenceDestroy", lt.preference_destroy));
  TPSIM_TRY_STATUS(library.find("cublasLtMatmulPreferenceSetAttribute", lt.preference_set));
  return lt;
}

}  // namespace

const Result<CublasLt>& cublas_lt() {
  static const Result<CublasLt> library = opened();
  return library;
}

}  // namespace tpsim
