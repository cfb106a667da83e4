#include "ranks/threads/thread_group.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/check.h"
#include "ranks/world.h"

namespace tpsim {
namespace {

// About twice the time of a small collective whose members are all waiting.
constexpr auto kSpinTime = std::chrono::microseconds(20);

// Hint to the core that the thread polls.
void pause_core() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` has no effect on most cores
#endif
}

// Polls for kSpinTime. If there are more threads than cores, threads do not spin: spinning would
// delay the thread that they wait for.
template <class Condition>
void spin_until(int threads, Condition condition) {
  static const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (threads > cores) return;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return;
      pause_core();
    }
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

ThreadGroup::ThreadGroup(int size)
    : size_(size),
      published_(static_cast<std::size_t>(size)),
      mailboxes_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

void ThreadGroup::exchange(int rank, void* mine,
                           const std::function<void(std::span<void* const>)>& work) {
  inside_.fetch_add(1, std::memory_order_acq_rel);
  published_[static_cast<std::size_t>(rank)] = mine;
  const bool all_published = wait_for_all();
  if (all_published) work(published_);
  inside_.fetch_sub(1, std::memory_order_acq_rel);
  if (!all_published || !wait_for_all()) leave_aborted();
}

ThreadGroup::Phase ThreadGroup::arrive() {
  // Reads the phase before the flag: if an abort happens after the flag is read, it advances the
  // phase that was read.
  const Phase phase = phase_.load(std::memory_order_acquire);
  if (aborted()) return phase;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_acq_rel);
    phase_.notify_all();
  }
  return phase;
}

bool ThreadGroup::wait_for_all() {
  const Phase phase = arrive();
  if (aborted()) return false;
  spin_until(size_, [&] { return phase_.load(std::memory_order_acquire) != phase; });
  phase_.wait(phase, std::memory_order_acquire);
  return !aborted();
}

ThreadGroup::Phase ThreadGroup::publish(int rank, void* mine) {
  published_[static_cast<std::size_t>(rank)] = mine;
  return arrive();
}

bool ThreadGroup::reached(Phase phase) {
  if (aborted()) leave_aborted();
  return phase_.load(std::memory_order_acquire) != phase;
}

void ThreadGroup::await(Phase phase) {
  if (aborted()) leave_aborted();
  spin_until(size_, [&] { return phase_.load(std::memory_order_acquire) != phase; });
  phase_.wait(phase, std::memory_order_acquire);
  if (aborted()) leave_aborted();
}

// Increments `inside_` before it reads the flag. If an aborting member then finds `inside_` zero,
// every member that enters later sees the flag.
void ThreadGroup::read(const std::function<void(std::span<void* const>)>& work) {
  inside_.fetch_add(1);
  const bool goes_on = !aborted_.load();
  if (goes_on) work(published_);
  inside_.fetch_sub(1);
  if (!goes_on) leave_aborted();
}

void ThreadGroup::wait_for_readers() const {
  while (inside_.load() > 0) std::this_thread::yield();
}

// Waits until no member reads this member's memory, which is freed after the throw.
void ThreadGroup::leave_aborted() {
  wait_for_readers();
  const std::lock_guard lock(reason_mutex_);
  throw CommunicatorAborted(reason_);
}

void ThreadGroup::abort(const std::string& reason) {
  {
    const std::lock_guard lock(reason_mutex_);
    if (aborted()) return;
    reason_ = reason;
    aborted_.store(true);
  }
  phase_.fetch_add(1, std::memory_order_acq_rel);
  phase_.notify_all();
  for (Mailbox& box : mailboxes_) {
    // Takes the lock so that a waiter between its check of the flag and its wait is also notified.
    { const std::lock_guard lock(box.mutex); }
    box.arrived.notify_all();
  }
}

void ThreadGroup::post(int from, int to, std::span<const std::byte> message) {
  Mailbox& box = mailbox(from, to);
  std::vector<std::byte> copy;
  {
    const std::lock_guard lock(box.mutex);
    if (!box.spare.empty()) {
      copy = std::move(box.spare.back());
      box.spare.pop_back();
    }
  }
  copy.assign(message.begin(), message.end());
  {
    const std::lock_guard lock(box.mutex);
    box.messages.push_back(std::move(copy));
    box.waiting.fetch_add(1, std::memory_order_release);
  }
  box.arrived.notify_one();
}

void ThreadGroup::collect(int from, int to, std::span<std::byte> message) {
  Mailbox& box = mailbox(from, to);
  spin_until(size_, [&] { return box.waiting.load(std::memory_order_acquire) > 0 || aborted(); });
  std::unique_lock lock(box.mutex);
  box.arrived.wait(lock, [&] { return !box.messages.empty() || aborted(); });
  if (aborted()) {
    lock.unlock();
    leave_aborted();
  }
  std::vector<std::byte> received = std::move(box.messages.front());
  box.messages.pop_front();
  box.waiting.fetch_sub(1, std::memory_order_release);
  lock.unlock();
  TPSIM_CHECK(received.size() == message.size(),
              "the message has another size than its receiver expects");
  std::memcpy(message.data(), received.data(), received.size());
  lock.lock();
  box.spare.push_back(std::move(received));
}

}  // namespace tpsim
