// The functions of NCCL that tpsim calls, found at run time.
#pragma once

#include <nccl.h>

#include <string>

#include "core/result.h"

namespace tpsim {

struct NcclLibrary {
  decltype(&::ncclGetVersion) version = nullptr;
  decltype(&::ncclGetUniqueId) unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommFinalize) finalize = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  std::string path;  // of the library

  // Throws CommunicatorAborted with what NCCL says.
  void check(ncclResult_t result, const char* what) const;
};

// Opened once per process; kMissing says where it was looked for.
const Result<NcclLibrary>& nccl_library();

}  // namespace tpsim
