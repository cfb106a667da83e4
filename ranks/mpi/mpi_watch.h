// Detects MPI calls that do not return. MPI itself has no timeout for a rank that hangs.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace tpsim {

// Marks an MPI call that waits for other ranks, from construction to destruction. Only one thread
// makes MPI calls, one at a time. Cheap: does not read the clock.
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
  // Calls `give_up` on the watch's thread if an MPI call does not return within `patience`. Passes
  // the name of the call. Calls it at most once.
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
