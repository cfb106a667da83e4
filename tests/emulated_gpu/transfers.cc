#include "tests/emulated_gpu/transfers.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/emulated_gpu/thread_block.h"

namespace tpsim::emulated {
namespace {

// Identifies a call; all ranks must agree on it.
std::uint64_t call_of(int kind, std::size_t count, ncclDataType_t type, int detail) {
  return (static_cast<std::uint64_t>(count) << 16) ^ (static_cast<std::uint64_t>(type) << 8) ^
         (static_cast<std::uint64_t>(kind) << 4) ^ static_cast<std::uint64_t>(detail);
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    default: return 4;
  }
}

template <class T, class Widen, class Narrow>
void combine(std::byte* into, const std::byte* from, std::size_t bytes, bool is_sum, Widen widen,
             Narrow narrow) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, into + at, sizeof a);
    std::memcpy(&b, from + at, sizeof b);
    const auto x = widen(a), y = widen(b);
    const T result = narrow(is_sum ? x + y : std::max(x, y));
    std::memcpy(into + at, &result, sizeof result);
  }
}

void combine(std::byte* into, const std::byte* from, std::size_t bytes, ncclDataType_t type,
             ncclRedOp_t op) {
  const bool is_sum = op == ncclSum;
  const auto same = [](auto x) { return x; };
  switch (type) {
    case ncclBfloat16:
      return combine<__nv_bfloat16>(into, from, bytes, is_sum, __bfloat162float,
                                    __float2bfloat16_rn);
    case ncclFloat16:
      return combine<__half>(into, from, bytes, is_sum, __half2float, __float2half_rn);
    case ncclFloat32: return combine<float>(into, from, bytes, is_sum, same, same);
    default: return combine<std::int32_t>(into, from, bytes, is_sum, same, same);
  }
}

// All ranks write a piece, then all read the pieces they need.
class Collective final : public Transfer {
 public:
  using Kind = CollectiveCall::Kind;

  Collective(std::shared_ptr<Comm> comm, const CollectiveCall& call)
      : Transfer(std::move(comm), call_of(static_cast<int>(call.kind), call.count, call.type,
                                          static_cast<int>(call.op) + 8 * call.root)),
        what_(call) {
    total_ = call.count * bytes_of(call.type);
  }

 private:
  bool move_piece() override {
    const std::size_t shares =
        what_.kind == Kind::kReduceScatter ? static_cast<std::size_t>(comm_->size()) : 1;
    const std::size_t bytes = std::min(kPiece / shares / 8 * 8, total_ - offset_);
    if (!written_) {
      if (!everybody(
              [](const Mailbox& mailbox, std::uint64_t turn) { return mailbox.read >= turn; })) {
        return false;
      }
      write(bytes, shares);
      written_ = true;
    }
    if (!everybody(
            [](const Mailbox& mailbox, std::uint64_t turn) { return mailbox.written > turn; })) {
      return false;
    }
    for (int rank = 0; rank < comm_->size(); ++rank) check_call(comm_->of_rank(rank));
    read(bytes);
    ++comm_->of_rank(comm_->rank()).read;
    ++comm_->turn;
    written_ = false;
    offset_ += bytes;
    return true;
  }

  template <class Condition>
  bool everybody(Condition condition) const {
    for (int rank = 0; rank < comm_->size(); ++rank) {
      if (!condition(comm_->of_rank(rank), comm_->turn)) return false;
    }
    return true;
  }

  void write(std::size_t bytes, std::size_t shares) {
    Mailbox& mine = comm_->of_rank(comm_->rank());
    mine.call = call_;
    for (std::size_t share = 0; share < shares; ++share) {
      std::memcpy(mine.data + share * bytes, what_.from + share * total_ + offset_, bytes);
    }
    ++mine.written;
  }

  void read(std::size_t bytes) {
    std::byte* const to = what_.to + offset_;
    switch (what_.kind) {
      case Kind::kAllReduce: return add_up(to, bytes, 0);
      case Kind::kReduceScatter:
        return add_up(to, bytes, static_cast<std::size_t>(comm_->rank()) * bytes);
      case Kind::kAllGather:
        for (int rank = 0; rank < comm_->size(); ++rank) {
          std::memcpy(to + static_cast<std::size_t>(rank) * total_, comm_->of_rank(rank).data,
                      bytes);
        }
        return;
      case Kind::kBroadcast: std::memcpy(to, comm_->of_rank(what_.root).data, bytes); return;
    }
  }

  void add_up(std::byte* to, std::size_t bytes, std::size_t place) {
    std::memcpy(to, comm_->of_rank(0).data + place, bytes);
    for (int rank = 1; rank < comm_->size(); ++rank) {
      combine(to, comm_->of_rank(rank).data + place, bytes, what_.type, what_.op);
    }
  }

  CollectiveCall what_;
  bool written_ = false;
};

constexpr int kMessage = 7;

// One end of a message. Neither end completes before the other has arrived, even for short
// messages.
class MessageTransfer : public Transfer {
 public:
  MessageTransfer(std::shared_ptr<Comm> comm, const Message& message)
      : Transfer(std::move(comm), call_of(kMessage, message.count, message.type, 0)),
        message_(message) {
    total_ = message.count * bytes_of(message.type);
  }

 protected:
  Message message_;
};

class Sending final : public MessageTransfer {
 public:
  using MessageTransfer::MessageTransfer;

 private:
  bool move_piece() override {
    Mailbox& mailbox = comm_->between(comm_->rank(), message_.peer);
    if (mailbox.read != mailbox.written) return false;
    const std::size_t bytes = std::min(kPiece, total_ - offset_);
    mailbox.call = call_;
    std::memcpy(mailbox.data, message_.data + offset_, bytes);
    ++mailbox.written;
    offset_ += bytes;
    return true;
  }
  bool has_arrived() const override {
    const Mailbox& mailbox = comm_->between(comm_->rank(), message_.peer);
    return mailbox.read == mailbox.written;
  }
};

class Receiving final : public MessageTransfer {
 public:
  using MessageTransfer::MessageTransfer;

 private:
  bool move_piece() override {
    Mailbox& mailbox = comm_->between(message_.peer, comm_->rank());
    if (mailbox.read == mailbox.written) return false;
    check_call(mailbox);
    const std::size_t bytes = std::min(kPiece, total_ - offset_);
    std::memcpy(message_.data + offset_, mailbox.data, bytes);
    ++mailbox.read;
    offset_ += bytes;
    return true;
  }
};

}  // namespace

void Transfer::check_call(const Mailbox& mailbox) const {
  if (mailbox.call != call_) end_with("ranks of a communicator call different things");
}

std::shared_ptr<Transfer> collective(std::shared_ptr<Comm> comm, const CollectiveCall& call) {
  return std::make_shared<Collective>(std::move(comm), call);
}
std::shared_ptr<Transfer> sending(std::shared_ptr<Comm> comm, const Message& message) {
  return std::make_shared<Sending>(std::move(comm), message);
}
std::shared_ptr<Transfer> receiving(std::shared_ptr<Comm> comm, const Message& message) {
  return std::make_shared<Receiving>(std::move(comm), message);
}

}  // namespace tpsim::emulated
