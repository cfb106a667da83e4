#include "ranks/process_signals.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/base/standard_streams.h"

namespace tpsim {
namespace {

std::atomic<pid_t> child_process{0};
std::atomic<bool> asked_to_end{false};

// Forwards signals sent by kill(). Signals of the terminal already reach the child.
void pass_on(int signal, siginfo_t* info, void*) {
  asked_to_end = true;
  const pid_t child = child_process.load();
  if (info->si_code <= 0 && child > 0) ::kill(child, signal);
}

void set_handlers(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

void set_default_handlers() {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The first SIGINT or SIGTERM requests a stop after the current step.
std::atomic<int> first_signal{0};
std::atomic<std::time_t> arrived_at{0};

static_assert(std::atomic<std::time_t>::is_always_lock_free, "used in a signal handler");

std::time_t seconds_now() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void note(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    arrived_at.store(seconds_now());
  } else if (seconds_now() - arrived_at.load() > 1) {
    ::_exit(128 + signal);
  }
}

}  // namespace

int supervised(const std::string& name, const std::string& remedy,
               const std::function<int()>& work) {
  const pid_t parent = ::getpid();
  set_handlers(pass_on);
  const pid_t child = ::fork();
  if (child <= 0) {
    set_default_handlers();
    if (child < 0) return work();  // cannot fork: run unsupervised
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return EXIT_FAILURE;  // the parent died before prctl()
    return work();
  }
  child_process.store(child);
  const int status = wait_for(child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  // A user or launcher sent SIGTERM to end the run, so it is not reported as a failure.
  if (asked_to_end && signal == SIGTERM) return 128 + signal;
  if (signal == SIGPIPE) return 128 + signal;  // the reader of the output closed the pipe
  say(fmt::format(
      "tpsim: error: {} ended by signal {} ({}){}; {}\n", name, signal, ::strsignal(signal),
      signal == SIGKILL ? ": killed, possibly because the machine ran out of memory" : "", remedy));
  return 128 + signal;
}

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

int stop_signal() { return first_signal.load(); }

}  // namespace tpsim
