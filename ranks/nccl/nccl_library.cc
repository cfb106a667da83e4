#include "ranks/nccl/nccl_library.h"

namespace tpsim {
namespace {

Result<NcclLibrary> opened() {
  TPSIM_TRY(const SharedLibrary library,
            SharedLibrary::open("NCCL", {"libnccl.so.2", "libnccl.so"}));
  NcclLibrary found;
  found.path = library.path();
  TPSIM_NCCL_FUNCTIONS(TPSIM_FIND_FUNCTION)
  return found;
}

}  // namespace

const Result<NcclLibrary>& nccl_library() {
  static const Result<NcclLibrary> library = opened();
  return library;
}

}  // namespace tpsim
