// Detects MPI calls that do not return, since MPI has no timeout for a rank that hangs.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace tpsim {

// Marks an MPI call that waits for other ranks. MPI calls are made by one thread, one at a time.
// Cheap: reads no clock.
class MpiCall {
 public:
  // `what` must have static storage.
  explicit MpiCall(const char* what);
  ~MpiCall();
  MpiCall(const MpiCall&) = delete;
  MpiCall& operator=(const MpiCall&) = delete;
};

// A thread that checks the current MPI call several times per second.
class MpiWatch {
 public:
  // Calls `give_up` on the watch's thread, at most once, with the call that has not returned within
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
