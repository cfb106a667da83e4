// A group whose members are threads of one process and read each other's memory.
//
// An exchange: publish addresses, barrier, read and write, barrier. Waiting spins briefly and then
// sleeps. abort() ends every wait of every member with CommunicatorAborted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tpsim {

class ThreadGroup {
 public:
  explicit ThreadGroup(int size);
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int size() const { return size_; }

  // Collective: calls `work` with the addresses of all members in rank order, and returns when all
  // have done so. Until then, only `work` may change the members' published memory. `work` must not
  // throw, since the others would continue to read.
  void exchange(int rank, void* mine, const std::function<void(std::span<void* const>)>& work);

  // exchange() in steps, for a member that overlaps other work. publish() and arrive() return the
  // phase that the others must reach before the next step. reached() tests it and await() waits for
  // it. read() calls `work`. Published memory must not change until the others have arrived twice.
  // All functions except the first two throw after an abort.
  using Phase = std::uint32_t;
  Phase publish(int rank, void* mine);
  Phase arrive();
  bool reached(Phase phase);
  void await(Phase phase);
  void read(const std::function<void(std::span<void* const>)>& work);
  // Waits until no other member accesses this one's memory. Call after abort().
  void wait_for_readers() const;

  // Messages between two members arrive in order. post() copies the message and returns.
  void post(int from, int to, std::span<const std::byte> message);
  void collect(int from, int to, std::span<std::byte> message);

  // Keeps only the first reason.
  void abort(const std::string& reason);

 private:
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable arrived;
    std::atomic<int> waiting{0};  // size of `messages`, readable without the lock
    std::deque<std::vector<std::byte>> messages;
    std::vector<std::vector<std::byte>> spare;  // buffers of messages already collected
  };

  Mailbox& mailbox(int from, int to) {
    return mailboxes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
                      static_cast<std::size_t>(to)];
  }
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  // Returns false if the group was aborted.
  bool wait_for_all();
  [[noreturn]] void leave_aborted();

  const int size_;
  std::vector<void*> published_;
  std::deque<Mailbox> mailboxes_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
  std::atomic<int> inside_{0};  // members that may access others' memory
  std::atomic<bool> aborted_{false};
  std::mutex reason_mutex_;
  std::string reason_;
};

}  // namespace tpsim
