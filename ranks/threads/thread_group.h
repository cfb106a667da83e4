// A group whose members are threads of one process: they read each other's memory.
//
// An exchange is: publish addresses, wait for all, read and write, wait for all. Waiting spins for
// a short while and then sleeps. abort() ends every wait of every member with CommunicatorAborted.
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

  // Collective: runs `work` with everyone's address, in rank order, and returns when all have done
  // so. Until then the members' memory stays as it was published, but for what `work` writes.
  // `work` must not throw: the others would go on reading.
  void exchange(int rank, void* mine, const std::function<void(std::span<void* const>)>& work);

  // exchange() in steps, for a member that does other things in between: publish() and arrive() say
  // how far the others must have come before the next step, which reached() and await() tell;
  // read() runs `work`. The memory stays as it was published until the others have arrived twice.
  // All but the first two throw where the group has been aborted.
  using Phase = std::uint32_t;
  Phase publish(int rank, void* mine);
  Phase arrive();
  bool reached(Phase phase);
  void await(Phase phase);
  void read(const std::function<void(std::span<void* const>)>& work);
  // Until no other member reads or writes this one's memory any more. After abort().
  void wait_for_readers() const;

  // Messages between two members arrive in the order they were sent. post() copies and returns.
  void post(int from, int to, std::span<const std::byte> message);
  void collect(int from, int to, std::span<std::byte> message);

  // Only the first reason is kept.
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
  // False when the group has been aborted.
  bool wait_for_all();
  [[noreturn]] void leave_aborted();

  const int size_;
  std::vector<void*> published_;
  std::deque<Mailbox> mailboxes_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
  std::atomic<int> inside_{0};  // members that may still touch others' memory
  std::atomic<bool> aborted_{false};
  std::mutex reason_mutex_;
  std::string reason_;
};

}  // namespace tpsim
