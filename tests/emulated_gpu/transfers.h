// Collectives and messages over a shared communicator, in pieces and without blocking, so that
// other streams of the process progress. Different calls on the ranks end the process with a
// message.
#pragma once

#include <nccl.h>

#include <memory>

#include "tests/emulated_gpu/shared_comm.h"

namespace tpsim::emulated {

// One rank's part of a call. step() advances as far as possible.
class Transfer {
 public:
  Transfer(std::shared_ptr<Comm> comm, std::uint64_t call) : comm_(std::move(comm)), call_(call) {
    ++comm_->under_way;
  }
  virtual ~Transfer() { --comm_->under_way; }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Returns true at the end.
  bool step() {
    if (comm_->aborted) return true;
    if (!comm_->is_complete()) return false;
    while (offset_ < total_) {
      if (!move_piece()) return false;
    }
    return has_arrived();
  }

 protected:
  virtual bool move_piece() = 0;
  virtual bool has_arrived() const { return true; }  // all moved data

  void check_call(const Mailbox& mailbox) const;

  std::shared_ptr<Comm> comm_;
  std::uint64_t call_;
  std::size_t offset_ = 0, total_ = 0;
};

struct CollectiveCall {
  enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast };
  Kind kind;
  const std::byte* from;
  std::byte* to;
  std::size_t count;  // as NCCL counts for this kind
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

// Sums are rounded after every addition, in the order of ranks.
std::shared_ptr<Transfer> collective(std::shared_ptr<Comm> comm, const CollectiveCall& call);

struct Message {
  std::byte* data;  // read at the sender
  std::size_t count;
  ncclDataType_t type;
  int peer;
};
std::shared_ptr<Transfer> sending(std::shared_ptr<Comm> comm, const Message& message);
std::shared_ptr<Transfer> receiving(std::shared_ptr<Comm> comm, const Message& message);

}  // namespace tpsim::emulated
