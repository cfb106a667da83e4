#include "tests/cli/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

namespace tpsim::test {
namespace {

namespace fs = std::filesystem;

constexpr auto kPoll = std::chrono::milliseconds(2);

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Row {
  pid_t parent = 0;
  std::string program;
};

// /proc/PID/stat: "pid (program) state parent ...".
std::map<pid_t, Row> process_table() {
  std::map<pid_t, Row> table;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = text_of(entry.path() / "stat");
    const std::size_t open = text.find('('), close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    std::istringstream rest(text.substr(close + 1));
    std::string state;
    Row row;
    rest >> state >> row.parent;
    row.program = text.substr(open + 1, close - open - 1);
    table[static_cast<pid_t>(std::stol(name))] = row;
  }
  return table;
}

}  // namespace

Process::Process(const std::string& command) {
  // The developer's terminal may set COLUMNS.
  const std::string line = "unset COLUMNS; exec </dev/null >'" + (folder_ / "out").string() +
                           "' 2>'" + (folder_ / "err").string() + "'; " + command;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::execl("/bin/bash", "bash", "-c", line.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
}

Process::~Process() {
  if (is_running_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
}

bool Process::prints(const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
  while (std::chrono::steady_clock::now() < end) {
    if (text_of(folder_ / "out").find(text) != std::string::npos) return true;
    if (::waitpid(pid_, &status_, WNOHANG) == pid_) {
      is_running_ = false;
      return text_of(folder_ / "out").find(text) != std::string::npos;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

std::vector<pid_t> Process::descendants(const std::string& program) const {
  const std::map<pid_t, Row> table = process_table();
  const auto descends = [&](pid_t pid) {
    while (pid > 1 && pid != pid_) {
      const auto row = table.find(pid);
      if (row == table.end()) return false;
      pid = row->second.parent;
    }
    return pid == pid_;
  };
  std::vector<pid_t> found;
  for (const auto& [pid, row] : table) {
    if (pid != pid_ && row.program == program && descends(pid)) found.push_back(pid);
  }
  return found;
}

bool Process::ends_within(std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (is_running_ && std::chrono::steady_clock::now() < end) {
    is_running_ = ::waitpid(pid_, &status_, WNOHANG) != pid_;
    if (is_running_) std::this_thread::sleep_for(kPoll);
  }
  return !is_running_;
}

Finished Process::finish() {
  if (is_running_) ::waitpid(pid_, &status_, 0);
  is_running_ = false;
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return {code, text_of(folder_ / "out"), text_of(folder_ / "err")};
}

Finished run(const std::string& command) { return Process(command).finish(); }

}  // namespace tpsim::test
