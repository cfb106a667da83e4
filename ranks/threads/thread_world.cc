#include "ranks/threads/thread_world.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>

#include "ranks/threads/thread_communicator.h"

namespace tpsim {
namespace {

// The n-th group of a kind with the same members, in each member's own count.
using GroupName = std::tuple<GroupKind, std::vector<std::int64_t>, int>;

// What the threads share: the groups they have formed, and the first failure.
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

  // After all threads have ended.
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
        return Ok{};  // the rank that failed tells why
      }
    });
    if (!status) team.fail(rank, status.error());
  };
  try {
    threads.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) threads.emplace_back(run_rank, rank);
  } catch (const std::system_error& error) {
    // Those that run would wait for the others for ever.
    const auto rank = static_cast<int>(threads.size());
    team.fail(rank, {ErrorKind::kMissing, std::string("no thread for it: ") + error.what(), "",
                     "allow more threads (ulimit -u), or start fewer ranks"});
  }
  threads.clear();
  return team.outcome();
}

}  // namespace tpsim
