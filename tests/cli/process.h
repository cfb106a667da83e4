// Programs started by a test: waited for, watched while they run, killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace tpsim::test {

struct Finished {
  int code = 0;  // 128 + signal for a process that died of one, as a shell counts
  std::string out, err;
};

class Process {
 public:
  // A shell replaces itself by the command, so pid() is the command's own.
  explicit Process(const std::string& command);
  ~Process();  // kills what is still there
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Waits until stdout holds `text`; false when the process ended, or a minute passed, without it.
  bool prints(const std::string& text);
  // All processes that descend from this one and run a program of that name.
  std::vector<pid_t> descendants(const std::string& program) const;
  // Waits for its end, at most so long; false when it is still there.
  bool ends_within(std::chrono::seconds limit);
  Finished finish();

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool is_running_ = true;
  int status_ = 0;
};

Finished run(const std::string& command);

using Folder = TemporaryFolder;

}  // namespace tpsim::test
