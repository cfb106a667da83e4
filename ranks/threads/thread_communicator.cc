#include "ranks/threads/thread_communicator.h"

#include <algorithm>
#include <cstring>

#include "ranks/reduce.h"

namespace tpsim {
namespace {

using Addresses = std::span<void* const>;

// Rank r's share of an all-reduce: whole cache lines, so that no two ranks write to one.
struct Share {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
Share share_of(std::int64_t elements, int rank, int size) {
  constexpr std::int64_t kLine = 32;
  const std::int64_t lines = (elements + kLine - 1) / kLine;
  const std::int64_t begin = std::min(elements, lines * rank / size * kLine);
  const std::int64_t end = std::min(elements, lines * (rank + 1) / size * kLine);
  return {begin, end - begin};
}

std::byte* part_address(void* all, std::int64_t part_bytes, int rank) {
  return static_cast<std::byte*>(all) + part_bytes * rank;
}

// One rank's part of an all-reduce, for all of them, and of a reduce-scatter.
void all_reduce_share(const Tensor& x, ReduceOp op, const Share& share, Addresses all) {
  const std::vector<const void*> sources(all.begin(), all.end());
  reduce({x.dtype(), op, share.first, share.count}, sources, all);
}
void reduce_part(const Tensor& part, int rank, Addresses wholes) {
  std::vector<const void*> mine;
  for (void* whole : wholes) mine.push_back(part_address(whole, part.bytes(), rank));
  void* const to = part.raw();
  reduce({part.dtype(), ReduceOp::kSum, 0, part.elements()}, mine, {&to, 1});
}

}  // namespace

// What others may still use is let go of when they have been told.
ThreadCommunicator::~ThreadCommunicator() {
  if (stage_ == Stage::kNone) return;
  threads_->abort("a rank has left a reduction that it had begun");
  threads_->wait_for_readers();
}

void ThreadCommunicator::do_all_reduce(const Tensor& x, ReduceOp op) {
  const Share share = share_of(x.elements(), rank(), size());
  threads_->exchange(rank(), x.raw(), [&](Addresses all) { all_reduce_share(x, op, share, all); });
}

void ThreadCommunicator::do_all_gather(const Tensor& part, const Tensor& all) {
  threads_->exchange(rank(), part.raw(), [&](Addresses parts) {
    for (int r = 0; r < size(); ++r) {
      std::byte* to = part_address(all.raw(), part.bytes(), r);
      const void* from = parts[static_cast<std::size_t>(r)];
      if (from != to) std::memcpy(to, from, static_cast<std::size_t>(part.bytes()));
    }
  });
}

void ThreadCommunicator::do_reduce_scatter(const Tensor& all, const Tensor& part) {
  threads_->exchange(rank(), all.raw(),
                     [&](Addresses wholes) { reduce_part(part, rank(), wholes); });
}

bool ThreadCommunicator::others_are_there(bool wait) {
  if (wait) threads_->await(phase_);
  return wait || threads_->reached(phase_);
}

bool ThreadCommunicator::do_advance(const Begun& call, bool wait) {
  if (stage_ == Stage::kNone) {
    phase_ = threads_->publish(rank(), call.all.raw());
    stage_ = Stage::kOthersCome;
  }
  if (stage_ == Stage::kOthersCome) {
    if (!others_are_there(wait)) return false;
    threads_->read([&](Addresses all) {
      if (call.scatters()) return reduce_part(call.part, rank(), all);
      all_reduce_share(call.all, call.op, share_of(call.all.elements(), rank(), size()), all);
    });
    phase_ = threads_->arrive();
    stage_ = Stage::kOthersRead;
  }
  if (!others_are_there(wait)) return false;
  stage_ = Stage::kNone;
  return true;
}

void ThreadCommunicator::do_all_to_all(const Tensor& from, const Tensor& to) {
  const std::int64_t part = from.bytes() / size();
  threads_->exchange(rank(), from.raw(), [&](Addresses sent) {
    for (int r = 0; r < size(); ++r) {
      std::memcpy(part_address(to.raw(), part, r),
                  part_address(sent[static_cast<std::size_t>(r)], part, rank()),
                  static_cast<std::size_t>(part));
    }
  });
}

void ThreadCommunicator::do_broadcast(const Tensor& x, int root) {
  threads_->exchange(rank(), x.raw(), [&](Addresses all) {
    if (rank() == root) return;
    std::memcpy(x.raw(), all[static_cast<std::size_t>(root)], static_cast<std::size_t>(x.bytes()));
  });
}

void ThreadCommunicator::do_send(const Tensor& x, int to) {
  threads_->post(rank(), to,
                 {static_cast<const std::byte*>(x.raw()), static_cast<std::size_t>(x.bytes())});
}

void ThreadCommunicator::do_receive(const Tensor& x, int from) {
  threads_->collect(from, rank(),
                    {static_cast<std::byte*>(x.raw()), static_cast<std::size_t>(x.bytes())});
}

}  // namespace tpsim
