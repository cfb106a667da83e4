// Child processes of a test: start, observe, wait, kill.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace tpsim::test {

struct Finished {
  int code = 0;  // 128 + signal for a process that a signal ended, as in a shell
  std::string out, err;
};

class Process {
 public:
  // The shell execs the command, so that pid() is the pid of the command.
  explicit Process(const std::string& command);
  ~Process();  // kills the process if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Waits until stdout contains `text`. Returns false if the process ends first, or after a minute.
  bool prints(const std::string& text);
  // All descendants of this process that run `program`.
  std::vector<pid_t> descendants(const std::string& program) const;
  // Waits for the end of the process. Returns false after `limit`.
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
