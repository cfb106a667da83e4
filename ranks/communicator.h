// A group of ranks that communicate. All members call the same functions in the same order.
//
// Public functions record the call, and return at once in a group of one rank. Virtual functions
// move the data. send() and receive() take the peer's index in the group. Two ranks that both send
// before they receive do not deadlock.
//
// Non-blocking reductions: begin_*() starts one, finish() waits for all. In between, the caller
// must not access the tensors of these reductions, and may only start further reductions on this
// communicator.
#pragma once

#include <vector>

#include "core/program/program.h"
#include "kernels/device.h"
#include "kernels/tensor.h"

namespace tpsim {

enum class ReduceOp : std::uint8_t { kSum, kMax };

// Maximum number of messages that one rank has in flight with NCCL. Each message is sent from its
// own staging buffer. The next message waits until the oldest has been sent. The staging buffers
// are not accounted as tensors.
inline constexpr int kMessageCopies = 2;

// Position of a rank in a group.
struct GroupMember {
  GroupKind group{};
  int rank = 0;  // index in the group
  int size = 1;
};

class Communicator : private OverlappedWork {
 public:
  Communicator(Device& device, GroupKind group, int rank, int size)
      : device_(device), group_(group), rank_(rank), size_(size) {}
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  GroupKind group() const { return group_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Reduces all elements of x in place.
  void all_reduce(const Tensor& x, ReduceOp op, const Label& label);
  // all = the parts of all ranks, in rank order. `part` may be this rank's slice of `all`.
  void all_gather(const Tensor& part, const Tensor& all, const Label& label);
  // part = this rank's part of the sum of `all`; `part` may be a slice of `all`.
  void reduce_scatter(const Tensor& all, const Tensor& part, const Label& label);
  // Non-blocking versions. The results are bit-equal to those of the blocking versions.
  void begin_all_reduce(const Tensor& x, ReduceOp op, const Label& label);
  void begin_reduce_scatter(const Tensor& all, const Tensor& part, const Label& label);
  // Makes all work that is issued afterwards wait for the reductions in flight.
  void finish();
  // Both tensors have size() equal parts in rank order. Part r of `from` goes to rank r, and part r
  // of `to` comes from rank r. The tensors must not overlap.
  void all_to_all(const Tensor& from, const Tensor& to, const Label& label);
  void broadcast(const Tensor& x, int root, const Label& label);
  void send(const Tensor& x, int to, const Label& label);
  void receive(const Tensor& x, int from, const Label& label);

 protected:
  virtual void do_all_reduce(const Tensor& x, ReduceOp op) = 0;
  virtual void do_all_gather(const Tensor& part, const Tensor& all) = 0;
  virtual void do_reduce_scatter(const Tensor& all, const Tensor& part) = 0;
  virtual void do_all_to_all(const Tensor& from, const Tensor& to) = 0;
  virtual void do_broadcast(const Tensor& x, int root) = 0;
  virtual void do_send(const Tensor& x, int to) = 0;
  virtual void do_receive(const Tensor& x, int from) = 0;

  // A non-blocking reduction; `part` is undefined for an all-reduce.
  struct Begun {
    ReduceOp op{};
    Tensor all, part;

    bool scatters() const { return part.defined(); }
  };
  // Starts a reduction. The default implementation runs the whole reduction, or its first steps if
  // needs_host().
  virtual void do_begin(const Begun& call);
  virtual void do_finish() { advance(true); }
  // needs_host(): the host moves the data, so reductions advance only in do_advance(). do_advance()
  // advances one reduction as far as possible without waiting, or with `wait` to its end. Returns
  // whether the reduction is complete. Reductions advance one by one, in the order of their start.
  virtual bool needs_host() const { return false; }
  virtual bool do_advance(const Begun& /*call*/, bool /*wait*/) { return true; }
  // Whether a reduction was started since the last finish().
  bool has_begun() const { return !pending_.empty(); }

  Device& device() const { return device_; }

 private:
  struct Pending {
    CollectiveRecord record;
    Begun call;  // owns references to the tensors
  };

  void begin(const Begun& call, CollectiveKind kind, const Label& label);
  void progress() final;
  void advance(bool wait);
  const CollectiveRecord& oldest() const;
  template <class Call>
  void recorded(CollectiveKind kind, std::int64_t bytes, const Label& label, Call call);

  Device& device_;
  GroupKind group_;
  int rank_;
  int size_;
  std::vector<Pending> pending_;
  std::size_t done_ = 0;  // number of complete entries of pending_
};

}  // namespace tpsim
