#include "cli/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

namespace tpsim::cli {
namespace {

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

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() { return first_signal.load() != 0; }

ErrorKind stop_kind() {
  return first_signal.load() == SIGINT ? ErrorKind::kInterrupted : ErrorKind::kTerminated;
}

}  // namespace tpsim::cli
