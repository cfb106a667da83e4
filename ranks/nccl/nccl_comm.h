// One NCCL communicator, monitored for errors and for hanging work.
//
// Communicators are non-blocking, so that no NCCL call exceeds the time limit. A rank that waits
// for missing ranks ends with an error message.
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
#include "ranks/nccl/rendezvous.h"

namespace tpsim {

// Marks work on a stream and checks its completion. The implementation is a CUDA event, except in
// tests.
class WorkMark {
 public:
  virtual ~WorkMark() = default;
  virtual void set(cudaStream_t stream) = 0;
  virtual bool reached() const = 0;
};
std::unique_ptr<WorkMark> event_mark();

// Arguments with which a rank joins a new group.
struct NcclInitArgs {
  ncclUniqueId id{};
  int rank = 0;
  int size = 1;
};
// Creates a communicator and waits for all members. Throws CommunicatorAborted if NCCL fails,
// `failure` returns a reason or members are missing after `limit`. `most_channels`: maximum number
// of thread blocks per call; 0: NCCL's choice.
ncclComm_t joined(const NcclLibrary& nccl, NcclInitArgs init, std::chrono::milliseconds limit,
                  int most_channels = 0, const FailureElsewhere& failure = nullptr);

class NcclComm {
 public:
  NcclComm(const NcclLibrary& nccl, ncclComm_t comm, std::unique_ptr<WorkMark> mark,
           std::chrono::milliseconds limit);
  // Finalizes the communicator, together with the other ranks. Aborts it instead if a call failed
  // or an exception propagates.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Runs `call`, which issues work to `stream`. Throws CommunicatorAborted if NCCL returns an error
  // or exceeds the limit, or after an abort.
  using Call = std::function<ncclResult_t(ncclComm_t)>;
  void enqueue(const char* what, cudaStream_t stream, const Call& call);

  // The following functions are for the monitoring thread. trouble() returns why the communicator
  // is unusable; nothing if it is usable.
  std::optional<std::string> trouble();
  // Prevents further calls and passes ownership to the caller, who aborts it. Returns null if
  // ownership was passed before.
  ncclComm_t give_up(const std::string& reason);
  const NcclLibrary& library() const { return nccl_; }

 private:
  ncclResult_t called(const Call& call);
  void note(cudaStream_t stream);

  const NcclLibrary& nccl_;
  ncclComm_t comm_;
  std::chrono::milliseconds limit_;
  int exceptions_;  // exceptions in flight at construction
  std::mutex mutex_;
  std::string failed_;   // reason, if a call of this object failed
  std::string aborted_;  // reason; comm_ then belongs to the caller of give_up()
  std::unique_ptr<WorkMark> mark_;
  bool waits_ = false;  // the mark is set and not yet reached, since since_
  std::chrono::steady_clock::time_point since_;
};

// Aborts all communicators of a process together. Aborting them one by one could deadlock: an abort
// waits for the communicator's last kernel, which may be queued behind the kernel of a communicator
// that is aborted later. Therefore all aborts start before the function waits for any of them. Each
// thread that runs an abort calls `begin` first.
void abort_together(const std::vector<std::shared_ptr<NcclComm>>& comms, const std::string& reason,
                    const std::function<void()>& begin = nullptr);

}  // namespace tpsim
