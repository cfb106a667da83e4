// A group of ranks that communicate. All members call the same functions in the same order.
//
// The public functions record and skip groups of one; the virtual ones move the data. send and
// receive name the peer by its index in the group and do not deadlock when both sides send first.
//
// Reductions may also run beside ops: begin_all_reduce() and begin_reduce_scatter() return before
// they are done, finish() makes them so. In between their tensors are left alone, and of this
// communicator nothing is called but more of the same.
#pragma once

#include <vector>

#include "core/program/program.h"
#include "kernels/device.h"
#include "kernels/tensor.h"

namespace tpsim {

enum class ReduceOp : std::uint8_t { kSum, kMax };

// Messages of one rank on their way at once, by NCCL: each leaves from a copy, and the next one
// waits until the oldest has left. Their memory is no tensor's.
inline constexpr int kMessageCopies = 2;

// One rank's place in a group.
struct GroupMember {
  GroupKind group{};
  int rank = 0;  // its index in the group
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

  // In place over all elements of x.
  void all_reduce(const Tensor& x, ReduceOp op, const Label& label);
  // all holds size() equal parts in rank order; `part` may be this rank's part of it.
  void all_gather(const Tensor& part, const Tensor& all, const Label& label);
  // part = this rank's part of the sum of all; it may lie inside `all`.
  void reduce_scatter(const Tensor& all, const Tensor& part, const Label& label);
  // The same beside ops. The sums have the same bits.
  void begin_all_reduce(const Tensor& x, ReduceOp op, const Label& label);
  void begin_reduce_scatter(const Tensor& all, const Tensor& part, const Label& label);
  // What was begun is done for everything that is issued from now on.
  void finish();
  // Both hold size() equal parts in rank order: part r of `from` goes to rank r, part r of `to` is
  // what came from it. They do not overlap.
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

  // A reduction beside ops; of an all-reduce `part` is undefined.
  struct Begun {
    ReduceOp op{};
    Tensor all, part;

    bool scatters() const { return part.defined(); }
  };
  // Those that override none of these do it at once.
  virtual void do_begin(const Begun& call);
  virtual void do_finish() { advance(true); }
  // Where the host moves the data: takes a reduction on as far as it goes without waiting, or to
  // its end. Whether it is done. One after the other, in the order in which they were begun.
  virtual bool needs_host() const { return false; }
  virtual bool do_advance(const Begun& /*call*/, bool /*wait*/) { return true; }
  // Since the last finish().
  bool has_begun() const { return !pending_.empty(); }

  Device& device() const { return device_; }

 private:
  struct Pending {
    CollectiveRecord record;
    Begun call;  // keeps the tensors alive
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
  std::size_t done_ = 0;  // of pending_
};

}  // namespace tpsim
