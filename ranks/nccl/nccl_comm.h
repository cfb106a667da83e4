// One communicator of NCCL, watched for errors and for work that does not end.
//
// Communicators are non-blocking: no call of NCCL takes longer than the limit, and a rank that
// waits for others which never come ends with a sentence.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ranks/nccl/nccl_library.h"

namespace tpsim {

// Whether the work that had been issued to a stream has been done. An event, except in tests.
class WorkMark {
 public:
  virtual ~WorkMark() = default;
  virtual void set(cudaStream_t stream) = 0;
  virtual bool reached() const = 0;
};
std::unique_ptr<WorkMark> event_mark();

// What a member brings to a group that is being formed.
struct NcclInitArgs {
  ncclUniqueId id{};
  int rank = 0;
  int size = 1;
};
// Waits for all members. Throws CommunicatorAborted when NCCL fails or they do not come in time.
// `most_channels`: thread blocks that a call may occupy, 0 for as many as NCCL likes.
ncclComm_t joined(const NcclLibrary& nccl, NcclInitArgs init, std::chrono::milliseconds limit,
                  int most_channels = 0);

class NcclComm {
 public:
  NcclComm(const NcclLibrary& nccl, ncclComm_t comm, std::unique_ptr<WorkMark> mark,
           std::chrono::milliseconds limit);
  // Finalizes with the other members; where one of its calls failed or an exception passes, aborts
  // without them.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Has `call` issue something to `stream`. Throws CommunicatorAborted when NCCL refuses, does not
  // take it in time, or this was aborted.
  using Call = std::function<ncclResult_t(ncclComm_t)>;
  void enqueue(const char* what, cudaStream_t stream, const Call& call);

  // The rest is called by the watching thread. Why this communicator is of no use any more, if so.
  std::optional<std::string> trouble();
  // No call begins from now on; the communicator is the caller's to abort. Null when it was given
  // up before.
  ncclComm_t give_up(const std::string& reason);
  const NcclLibrary& library() const { return nccl_; }

 private:
  ncclResult_t called(const Call& call);
  void note(cudaStream_t stream);

  const NcclLibrary& nccl_;
  ncclComm_t comm_;
  std::chrono::milliseconds limit_;
  int exceptions_;  // in flight when this was made
  std::mutex mutex_;
  std::string failed_;   // why: a call of its own
  std::string aborted_;  // why; comm_ belongs to whoever asked for that
  std::unique_ptr<WorkMark> mark_;
  bool waits_ = false;  // for the mark, since:
  std::chrono::steady_clock::time_point since_;
};

// Aborts communicators of one process. One after the other they would wait for ever: an abort waits
// for the communicator's last kernel, which may lie on a stream behind another's that is aborted
// later. So NCCL is told of all before it waits for any. Threads that it starts run `begin` first.
void abort_together(const std::vector<std::shared_ptr<NcclComm>>& comms, const std::string& reason,
                    const std::function<void()>& begin = nullptr);

}  // namespace tpsim
