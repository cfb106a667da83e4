#include "ranks/nccl/nccl_library.h"

#include "kernels/cuda/shared_library.h"

namespace tpsim {
namespace {

Result<NcclLibrary> opened() {
  TPSIM_TRY(const SharedLibrary library,
            SharedLibrary::open("NCCL", {"libnccl.so.2", "libnccl.so"}));
  NcclLibrary nccl;
  nccl.path = library.path();
  TPSIM_TRY_STATUS(library.find("ncclGetVersion", nccl.version));
  TPSIM_TRY_STATUS(library.find("ncclGetUniqueId", nccl.unique_id));
  TPSIM_TRY_STATUS(library.find("ncclCommInitRankConfig", nccl.init_rank));
  TPSIM_TRY_STATUS(library.find("ncclCommFinalize", nccl.finalize));
  TPSIM_TRY_STATUS(library.find("ncclCommDestroy", nccl.destroy));
  TPSIM_TRY_STATUS(library.find("ncclCommAbort", nccl.abort));
  TPSIM_TRY_STATUS(library.find("ncclCommGetAsyncError", nccl.async_error));
  TPSIM_TRY_STATUS(library.find("ncclGetErrorString", nccl.error_string));
  TPSIM_TRY_STATUS(library.find("ncclGetLastError", nccl.last_error));
  TPSIM_TRY_STATUS(library.find("ncclAllReduce", nccl.all_reduce));
  TPSIM_TRY_STATUS(library.find("ncclAllGather", nccl.all_gather));
  TPSIM_TRY_STATUS(library.find("ncclReduceScatter", nccl.reduce_scatter));
  TPSIM_TRY_STATUS(library.find("ncclBroadcast", nccl.broadcast));
  TPSIM_TRY_STATUS(library.find("ncclSend", nccl.send));
  TPSIM_TRY_STATUS(library.find("ncclRecv", nccl.receive));
  TPSIM_TRY_STATUS(library.find("ncclGroupStart", nccl.group_start));
  TPSIM_TRY_STATUS(library.find("ncclGroupEnd", nccl.group_end));
  return nccl;
}

}  // namespace

const Result<NcclLibrary>& nccl_library() {
  static const Result<NcclLibrary> library = opened();
  return library;
}

}  // namespace tpsim
