// Exchange of short messages between the ranks of a job before NCCL is available: through a shared
// folder, or a server in rank 0.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "ranks/nccl/launch_environment.h"

namespace tpsim {

// Returns why another rank has failed; empty if none has.
using FailureElsewhere = std::function<std::string()>;

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Keys consist of letters, digits, '-' and '_'. Each key is written once.
  virtual Status put(const std::string& key, const std::string& value,
                     std::chrono::seconds limit = std::chrono::seconds(300)) = 0;
  // Waits for the value of a key. Error after `limit`, or when `failure` returns a reason.
  Result<std::string> get(const std::string& key, std::chrono::seconds limit,
                          const FailureElsewhere& failure = nullptr);

  // Returns the current value without waiting; empty if there is none.
  std::string found(const std::string& key) { return look_up(key); }

 protected:
  // Returns the value; empty if there is none or the server cannot be reached.
  virtual std::string look_up(const std::string& key) = 0;
};

// Connects to the rendezvous of the job. If the launch has an address, not a folder, rank 0 runs
// the server (text_server.h) for the lifetime of the returned object.
Result<std::unique_ptr<Rendezvous>> meet(const Launch& launch);

}  // namespace tpsim
