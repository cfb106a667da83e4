// The functions of NCCL that tpsim calls, loaded at run time.
#pragma once

#include <nccl.h>

#include <string>

#include "core/base/result.h"
#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {

// Name of the member, name of NCCL's function.
#define TPSIM_NCCL_FUNCTIONS(DO)         \
  DO(version, ncclGetVersion)            \
  DO(unique_id, ncclGetUniqueId)         \
  DO(init_rank, ncclCommInitRankConfig)  \
  DO(finalize, ncclCommFinalize)         \
  DO(destroy, ncclCommDestroy)           \
  DO(abort, ncclCommAbort)               \
  DO(async_error, ncclCommGetAsyncError) \
  DO(error_string, ncclGetErrorString)   \
  DO(last_error, ncclGetLastError)       \
  DO(all_reduce, ncclAllReduce)          \
  DO(all_gather, ncclAllGather)          \
  DO(reduce_scatter, ncclReduceScatter)  \
  DO(broadcast, ncclBroadcast)           \
  DO(send, ncclSend)                     \
  DO(receive, ncclRecv)                  \
  DO(group_start, ncclGroupStart)        \
  DO(group_end, ncclGroupEnd)

struct NcclLibrary {
  TPSIM_NCCL_FUNCTIONS(TPSIM_FUNCTION_MEMBER)
  std::string path;  // path of the library

  // Throws CommunicatorAborted with NCCL's error message.
  void check(ncclResult_t result, const char* what) const;
  std::string refusal(ncclResult_t result, const std::string& what) const;
  // State of the communicator after its calls so far.
  ncclResult_t state_of(ncclComm_t comm) const;
};

// Loads the library once per process. kMissing lists the places that were searched.
const Result<NcclLibrary>& nccl_library();

}  // namespace tpsim
