// A thread that checks a process's communicators several times per second.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ranks/nccl/nccl_comm.h"

namespace tpsim {

// The first error, of a communicator of this process or of another rank, aborts all communicators,
// so that no caller keeps waiting.
class NcclWatch {
 public:
  struct Callbacks {
    std::function<void()> begin = nullptr;  // called at the start of each thread
    // Returns why another rank has failed; empty if none has. Called every few seconds.
    std::function<std::string()> elsewhere = nullptr;
    // Called with the reason if NCCL has not aborted the communicators within `abort_limit`. Ends
    // the process.
    std::function<void(const std::string& reason)> abort_hangs = nullptr;
    std::chrono::milliseconds look_every{200}, ask_every{2000}, abort_limit{30'000};
  };
  explicit NcclWatch(Callbacks callbacks);
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  void add(const std::shared_ptr<NcclComm>& comm);

  // Aborts all communicators because of an error of this rank.
  void abort(const std::string& reason);

  // The first error; `text` is empty if there is none.
  struct Trouble {
    std::string text;
    bool elsewhere = false;  // another rank reports it
  };
  Trouble trouble() const;

 private:
  void look();
  void look_once(bool also_elsewhere);
  std::vector<std::shared_ptr<NcclComm>> all() const;
  void abort_all(const std::string& reason);

  Callbacks callbacks_;
  std::mutex aborts_;  // serializes aborts
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<NcclComm>> comms_;
  Trouble trouble_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tpsim
