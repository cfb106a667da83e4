// A communicator between processes of one machine, in shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tpsim::emulated {

constexpr std::size_t kPiece = std::size_t{64} << 10;  // bytes

// A place in shared memory that one rank writes and others read, alternating.
struct Mailbox {
  std::atomic<std::uint64_t> written, read;  // number of writes and reads
  std::uint64_t call;                        // identifies the writer's call
  alignas(64) std::byte data[kPiece];
};

class Comm {
 public:
  // `name` is equal on all ranks and unique among communicators.
  Comm(std::string name, int rank, int size);
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_complete() const;  // all have joined

  // The mailbox of a rank for collectives, and from one rank to another for messages.
  Mailbox& of_rank(int rank) { return mailbox(static_cast<std::size_t>(rank)); }
  Mailbox& between(int from, int to) {
    return mailbox(static_cast<std::size_t>(size_ + from * size_ + to));
  }

  bool aborted = false;
  int under_way = 0;  // calls in flight
  // The last call until NCCL's own thread has put it on its stream, and the number of status
  // queries.
  std::function<void()> starting;
  int asked = 0;
  std::uint64_t turn = 0;  // number of collectives

 private:
  struct Header;
  Header& header() const;
  Mailbox& mailbox(std::size_t i);

  std::string name_;
  int rank_, size_;
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace tpsim::emulated
