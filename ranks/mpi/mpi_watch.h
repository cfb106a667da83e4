// Notices when a call of MPI does not come back: MPI itself waits for a rank that hangs forever.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace tpsim {

// Stands around a call of MPI that waits for other ranks. MPI is one to a process, and so is the
// call that is under way; it is made by one thread. Cheap: no clock is read.
class MpiCall {
 public:
  // `what` has static storage.
  explicit MpiCall(const char* what);
  ~MpiCall();
  MpiCall(const MpiCall&) = delete;
  MpiCall& operator=(const MpiCall&) = delete;
};

// While it lives, a thread looks at the call that is under way several times a second.
class MpiWatch {
 public:
  // `give_up` is called on the watch's thread, at most once, with what has not come back for
  // `patience`.
  MpiWatch(std::chrono::seconds patience, std::function<void(const std::string& what)> give_up);
  ~MpiWatch();
  MpiWatch(const MpiWatch&) = delete;
  MpiWatch& operator=(const MpiWatch&) = delete;

 private:
  void look();

  std::chrono::seconds patience_;
  std::function<void(const std::string& what)> give_up_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tpsim
