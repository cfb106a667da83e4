#include "kernels/cuda/linear/cublas_lt.h"

namespace tpsim {
namespace {

Result<CublasLt> opened() {
  const std::string major = std::to_string(CUBLAS_VER_MAJOR);
  TPSIM_TRY(const SharedLibrary library,
            SharedLibrary::open("cuBLASLt", {"libcublasLt.so." + major, "libcublasLt.so"}));
  CublasLt found;
  found.path = library.path();
  TPSIM_CUBLAS_LT_FUNCTIONS(TPSIM_FIND_FUNCTION)
  return found;
}

}  // namespace

const Result<CublasLt>& cublas_lt() {
  static const Result<CublasLt> library = opened();
  return library;
}

}  // namespace tpsim
