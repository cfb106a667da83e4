#include "ranks/mpi/mpi_watch.h"

#include <cstdint>

namespace tpsim {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);

// Incremented at the start and the end of each call: odd during a call, and different for every
// call.
std::atomic<std::uint64_t> turns{0};
std::atomic<const char*> current_operation{""};

}  // namespace

MpiCall::MpiCall(const char* what) {
  current_operation.store(what, std::memory_order_relaxed);
  turns.fetch_add(1, std::memory_order_release);
}

MpiCall::~MpiCall() { turns.fetch_add(1, std::memory_order_release); }

MpiWatch::MpiWatch(std::chrono::seconds patience,
                   std::function<void(const std::string& what)> give_up)
    : patience_(patience), give_up_(std::move(give_up)), thread_([this] { look(); }) {}

MpiWatch::~MpiWatch() {
  ends_ = true;
  thread_.join();
}

void MpiWatch::look() {
  // Counts checks instead of reading the clock, so that time in which this process is suspended
  // does not count.
  std::uint64_t seen = 0;
  std::int64_t looks = 0;
  while (!ends_) {
    std::this_thread::sleep_for(kLook);
    const std::uint64_t turn = turns.load(std::memory_order_acquire);
    if (turn != seen || turn % 2 == 0) {
      seen = turn;
      looks = 0;
    } else if (++looks * kLook > patience_) {
      return give_up_(current_operation.load(std::memory_order_relaxed));
    }
  }
}

}  // namespace tpsim
