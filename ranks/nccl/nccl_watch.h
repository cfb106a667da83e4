// A thread that looks at a process's communicators a few times a second.
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

// The first trouble, of a communicator or elsewhere, aborts all of them: whoever waits in one is
// let go.
class NcclWatch {
 public:
  struct Callbacks {
    std::function<void()> begin = nullptr;  // in the thread, before anything else
    // Why another rank has failed; empty while none has. Asked every few seconds.
    std::function<std::string()> elsewhere = nullptr;
    // NCCL has not given up the communicators within `abort_limit`: ends the process, saying why it
    // came to this.
    std::function<void(const std::string& reason)> abort_hangs = nullptr;
    std::chrono::milliseconds look_every{200}, ask_every{2000}, abort_limit{30'000};
  };
  explicit NcclWatch(Callbacks callbacks);
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  void add(const std::shared_ptr<NcclComm>& comm);

  // Aborts all of them for a reason of this rank's own.
  void abort(const std::string& reason);

  // Empty while all is well.
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
  std::mutex aborts_;  // one at a time
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<NcclComm>> comms_;
  Trouble trouble_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tpsim
