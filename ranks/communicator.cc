#include "ranks/communicator.h"

#include <algorithm>

namespace tpsim {
namespace {

void require_floating(const Tensor& x) {
  TPSIM_CHECK(is_floating(x.dtype()), "reductions need a floating-point dtype");
}

}  // namespace

Communicator::~Communicator() {
  if (!pending_.empty()) device_.remove_overlapped(*this);
}

template <class Call>
void Communicator::recorded(CollectiveKind kind, std::int64_t bytes, const Label& label,
                            Call call) {
  if (size_ == 1) return;
  const CollectiveRecord record{kind, group_, size_, bytes, label};
  Recorder* recorder = device_.recorder();
  if (recorder != nullptr) recorder->collective_started(record);
  call();
  if (recorder != nullptr) recorder->collective_finished(record);
}

void Communicator::all_reduce(const Tensor& x, ReduceOp op, const Label& label) {
  require_floating(x);
  recorded(CollectiveKind::kAllReduce, x.bytes(), label, [&] { do_all_reduce(x, op); });
}

void Communicator::all_gather(const Tensor& part, const Tensor& all, const Label& label) {
  TPSIM_CHECK(part.elements() * size_ == all.elements(), "all_gather: parts make up the whole");
  recorded(CollectiveKind::kAllGather, all.bytes(), label, [&] { do_all_gather(part, all); });
}

void Communicator::reduce_scatter(const Tensor& all, const Tensor& part, const Label& label) {
  require_floating(part);
  TPSIM_CHECK(part.elements() * size_ == all.elements(), "reduce_scatter: parts make up the whole");
  recorded(CollectiveKind::kReduceScatter, all.bytes(), label,
           [&] { do_reduce_scatter(all, part); });
}

void Communicator::begin_all_reduce(const Tensor& x, ReduceOp op, const Label& label) {
  begin({op, x, Tensor()}, CollectiveKind::kAllReduce, label);
}

void Communicator::begin_reduce_scatter(const Tensor& all, const Tensor& part, const Label& label) {
  TPSIM_CHECK(part.elements() * size_ == all.elements(), "reduce_scatter: parts make up the whole");
  begin({ReduceOp::kSum, all, part}, CollectiveKind::kReduceScatter, label);
}

void Communicator::begin(const Begun& call, CollectiveKind kind, const Label& label) {
  require_floating(call.all);
  if (size_ == 1) return;
  const CollectiveRecord record{kind, group_, size_, call.all.bytes(), label};
  if (pending_.empty() && needs_host()) device_.add_overlapped(*this);
  pending_.push_back({record, call});
  Recorder* recorder = device_.recorder();
  if (recorder != nullptr) recorder->collective_started(record);
  do_begin(call);
  if (recorder != nullptr) recorder->collective_finished(record);
}

void Communicator::do_begin(const Begun& call) {
  if (needs_host()) {
    advance(false);
  } else if (call.scatters()) {
    do_reduce_scatter(call.all, call.part);
  } else {
    do_all_reduce(call.all, call.op);
  }
}

const CollectiveRecord& Communicator::oldest() const {
  return pending_[std::min(done_, pending_.size() - 1)].record;
}

void Communicator::advance(bool wait) {
  while (done_ < pending_.size() && do_advance(pending_[done_].call, wait)) ++done_;
}

void Communicator::progress() {
  if (done_ == pending_.size()) return;
  const CollectiveRecord record = oldest();
  Recorder* recorder = device_.recorder();
  if (recorder != nullptr) recorder->collective_resumed(record);
  advance(false);
  if (recorder != nullptr) recorder->collective_paused(record);
}

void Communicator::finish() {
  if (pending_.empty()) return;
  const CollectiveRecord record = oldest();
  Recorder* recorder = device_.recorder();
  if (recorder != nullptr) recorder->collective_resumed(record);
  do_finish();
  if (recorder != nullptr) recorder->collective_paused(record);
  device_.remove_overlapped(*this);
  pending_.clear();
  done_ = 0;
}

void Communicator::all_to_all(const Tensor& from, const Tensor& to, const Label& label) {
  TPSIM_CHECK(from.elements() == to.elements() && from.elements() % size_ == 0,
              "all_to_all: equal parts for all");
  recorded(CollectiveKind::kAllToAll, to.bytes(), label, [&] { do_all_to_all(from, to); });
}

void Communicator::broadcast(const Tensor& x, int root, const Label& label) {
  recorded(CollectiveKind::kBroadcast, x.bytes(), label, [&] { do_broadcast(x, root); });
}

void Communicator::send(const Tensor& x, int to, const Label& label) {
  TPSIM_CHECK(to >= 0 && to < size_ && to != rank_, "send to another member");
  recorded(CollectiveKind::kSend, x.bytes(), label, [&] { do_send(x, to); });
}

void Communicator::receive(const Tensor& x, int from, const Label& label) {
  TPSIM_CHECK(from >= 0 && from < size_ && from != rank_, "receive from another member");
  recorded(CollectiveKind::kReceive, x.bytes(), label, [&] { do_receive(x, from); });
}

}  // namespace tpsim
