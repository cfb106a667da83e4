// The functions of NCCL that tpsim calls, loaded at run time.
#pragma once

#include <nccl.h>

#include <string>

#include "core/base/result.h"
#include "kernels/cuda/runtime/shared_library.h"

namespace tpsim {

// Pairs of NcclLibrary member and NCCL function.
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
  std::string path;  // of the loaded library

  // Throws CommunicatorAborted with NCCL's error message, unless `result` is success or in
  // progress.
  void check(ncclResult_t result, const char* what) const;
  std::string refusal(ncclResult_t result, const std::string& what) const;
  // Returns the state of the communicator: ncclInProgress until its last call has completed.
  ncclResult_t state_of(ncclComm_t comm) const;
};

// Loads NCCL once per process. Error kMissing lists the searched paths.
const Result<NcclLibrary>& nccl_library();

}  // namespace tpsim
