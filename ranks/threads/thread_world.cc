#include "ranks/threads/thread_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "ranks/reduce.h"
#include "ranks/threads/thread_group.h"

namespace tpsim {
namespace {

using Addresses = std::span<void* const>;

// The elements that rank r reduces in an all-reduce. Shares are whole cache lines, so that no line
// is written by two ranks.
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

// all_reduce_share() reduces this rank's share of an all-reduce and writes it to the tensors of all
// ranks. reduce_part() reduces this rank's part of a reduce-scatter.
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

// Collectives among the threads of one process, over host memory. Reductions add in rank order and
// round once, so that results are bit-equal on all members and in all runs.
class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(Device& device, GroupKind group, int rank,
                     std::shared_ptr<ThreadGroup> threads)
      : Communicator(device, group, rank, threads->size()), threads_(std::move(threads)) {}
  // Aborts the group and waits for its readers before the published memory is freed.
  ~ThreadCommunicator() override {
    if (stage_ == Stage::kNone) return;
    threads_->abort("a rank ended before its reduction was complete");
    threads_->wait_for_readers();
  }

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override {
    const Share share = share_of(x.elements(), rank(), size());
    threads_->exchange(rank(), x.raw(),
                       [&](Addresses all) { all_reduce_share(x, op, share, all); });
  }

  void do_all_gather(const Tensor& part, const Tensor& all) override {
    threads_->exchange(rank(), part.raw(), [&](Addresses parts) {
      for (int r = 0; r < size(); ++r) {
        std::byte* to = part_address(all.raw(), part.bytes(), r);
        const void* from = parts[static_cast<std::size_t>(r)];
        if (from != to) std::memcpy(to, from, static_cast<std::size_t>(part.bytes()));
      }
    });
  }

  void do_reduce_scatter(const Tensor& all, const Tensor& part) override {
    threads_->exchange(rank(), all.raw(),
                       [&](Addresses wholes) { reduce_part(part, rank(), wholes); });
  }

  bool do_advance(const Begun& call, bool wait) override {
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

  void do_all_to_all(const Tensor& from, const Tensor& to) override {
    const std::int64_t part = from.bytes() / size();
    threads_->exchange(rank(), from.raw(), [&](Addresses sent) {
      for (int r = 0; r < size(); ++r) {
        std::memcpy(part_address(to.raw(), part, r),
                    part_address(sent[static_cast<std::size_t>(r)], part, rank()),
                    static_cast<std::size_t>(part));
      }
    });
  }

  void do_broadcast(const Tensor& x, int root) override {
    threads_->exchange(rank(), x.raw(), [&](Addresses all) {
      if (rank() == root) return;
      std::memcpy(x.raw(), all[static_cast<std::size_t>(root)],
                  static_cast<std::size_t>(x.bytes()));
    });
  }

  void do_send(const Tensor& x, int to) override {
    threads_->post(rank(), to,
                   {static_cast<const std::byte*>(x.raw()), static_cast<std::size_t>(x.bytes())});
  }

  void do_receive(const Tensor& x, int from) override {
    threads_->collect(from, rank(),
                      {static_cast<std::byte*>(x.raw()), static_cast<std::size_t>(x.bytes())});
  }
  bool needs_host() const override { return true; }

 private:
  // Stage of the reduction in flight. kOthersCome: waits until all members have published.
  // kOthersRead: waits until all members have read.
  enum class Stage : std::uint8_t { kNone, kOthersCome, kOthersRead };

  bool others_are_there(bool wait) {
    if (wait) threads_->await(phase_);
    return wait || threads_->reached(phase_);
  }

  std::shared_ptr<ThreadGroup> threads_;
  Stage stage_ = Stage::kNone;
  ThreadGroup::Phase phase_ = 0;
};

// Identifies a group: kind, members, and how many groups of this kind with these members were
// created before. Each member counts its own calls.
using GroupName = std::tuple<GroupKind, std::vector<std::int64_t>, int>;

// State shared by the threads of a run: their groups, and the first failure.
class ThreadTeam {
 public:
  std::shared_ptr<ThreadGroup> group(const GroupName& name) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<ThreadGroup>& group = groups_[name];
    if (group == nullptr) {
      group = std::make_shared<ThreadGroup>(static_cast<int>(std::get<1>(name).size()));
      if (failure_) group->abort(failure_->message);
    }
    return group;
  }

  void fail(int rank, Error error) {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    if (rank != 0) error.message = fmt::format("rank {}: {}", rank, error.message);
    failure_ = std::move(error);
    for (auto& [name, group] : groups_) group->abort(failure_->message);
  }

  // Call after all threads have ended.
  Status outcome() const {
    if (failure_) return *failure_;
    return Ok{};
  }

 private:
  std::mutex mutex_;
  std::map<GroupName, std::shared_ptr<ThreadGroup>> groups_;
  std::optional<Error> failure_;
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadTeam& team, int rank, int size) : World(rank, size), team_(team) {}

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override {
    const int count = formed_[{group, members}]++;
    return std::make_unique<ThreadCommunicator>(
        device, group, member_of(*this, group, members).rank, team_.group({group, members, count}));
  }

 private:
  ThreadTeam& team_;
  std::map<std::pair<GroupKind, std::vector<std::int64_t>>, int> formed_;
};

}  // namespace

Status run_on_threads(int size, const RankBody& body) {
  ThreadTeam team;
  std::vector<std::jthread> threads;
  const auto run_rank = [&](int rank) {
    ThreadWorld world(team, rank, size);
    const Status status = outcome_of(world, [&](World& ranks) -> Status {
      try {
        return body(ranks);
      } catch (const CommunicatorAborted&) {
        return Ok{};  // the failed rank reports the reason
      }
    });
    if (!status) team.fail(rank, status.error());
  };
  try {
    threads.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) threads.emplace_back(run_rank, rank);
  } catch (const std::system_error& error) {
    // Aborts the groups: the started threads would wait forever for the missing ones.
    const auto rank = static_cast<int>(threads.size());
    team.fail(rank, {ErrorKind::kMissing, std::string("cannot start a thread: ") + error.what(), "",
                     "allow more threads (ulimit -u), or start fewer ranks"});
  }
  threads.clear();
  return team.outcome();
}

}  // namespace tpsim
