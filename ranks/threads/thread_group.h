// A group whose members are threads of one process and read each other's memory.
//
// An exchange has four steps: publish addresses, barrier, read and write, barrier. A waiting thread
// spins briefly and then sleeps. abort() ends all waits of all members with CommunicatorAborted.
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

  // Calls `work` with the addresses of all members in rank order. Returns when `work` has returned
  // on all members. Until then, only `work` may change the memory that members published. `work`
  // must not throw, because the other members would continue to read. Collective.
  void exchange(int rank, void* mine, const std::function<void(std::span<void* const>)>& work);

  // exchange() in steps, for a member that overlaps it with other work: publish(), await(), read(),
  // arrive(), await(). publish() and arrive() return the phase that ends when all members have made
  // the same call. reached() returns whether the phase has ended, await() waits for its end. read()
  // calls `work`. Published memory must not change until the second phase has ended. All functions
  // except publish() and arrive() throw after an abort.
  using Phase = std::uint32_t;
  Phase publish(int rank, void* mine);
  Phase arrive();
  bool reached(Phase phase);
  void await(Phase phase);
  void read(const std::function<void(std::span<void* const>)>& work);
  // Waits until no other member accesses this member's memory. Call after abort().
  void wait_for_readers() const;

  // Messages from one member to another arrive in order. post() copies the message and returns.
  // collect() waits for the next message.
  void post(int from, int to, std::span<const std::byte> message);
  void collect(int from, int to, std::span<std::byte> message);

  // Aborts the group. Only the reason of the first call is kept.
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
