// Where the ranks of a job leave each other short messages before they can talk by NCCL: a shared
// folder, or a server inside rank 0.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "ranks/nccl/launch_environment.h"

namespace tpsim {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Keys are letters, digits, '-' and '_'; each is put once.
  virtual Status put(const std::string& key, const std::string& value,
                     std::chrono::seconds limit = std::chrono::seconds(300)) = 0;
  // Waits until it has been put; an error when that takes too long.
  Result<std::string> get(const std::string& key, std::chrono::seconds limit);

  // The value as far as it is known now; empty while there is none.
  std::string found(const std::string& key) { return look_up(key); }

 protected:
  // The value; empty while there is none. An unreachable server counts as none.
  virtual std::string look_up(const std::string& key) = 0;
};

// Rank 0 of a launch by address becomes the server (text_server.h), for as long as the object
// lives.
Result<std::unique_ptr<Rendezvous>> meet(const Launch& launch);

}  // namespace tpsim
