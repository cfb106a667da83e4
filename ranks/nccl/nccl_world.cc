#include "ranks/nccl/nccl_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "kernels/cuda/runtime/cuda_check.h"
#include "ranks/meta/lone_world.h"
#include "ranks/nccl/nccl_communicator.h"
#include "ranks/nccl/nccl_watch.h"
#include "ranks/nccl/rendezvous.h"

namespace tpsim {
namespace {

// Rendezvous key under which a rank stores the reason of its failure.
constexpr const char* kFailure = "failure";
// Maximum number of channels of a P2P message. A message occupies one SM per channel from the send
// until the receive. With NCCL's default of 16 channels over NVLink, GEMMs would need one more
// wave.
constexpr int kMessageChannels = 4;
// Minimum number of hardware queues: streams of ops, of messages in two directions of two
// pipelines, and of NCCL.
constexpr int kLeastQueues = 8;

class NcclWorld final : public World {
 public:
  NcclWorld(const Launch& launch, CudaDevice& device, Rendezvous& rendezvous, NcclWatch& watch,
            std::chrono::seconds limit)
      : World(launch.rank, launch.size),
        device_(device),
        rendezvous_(rendezvous),
        watch_(watch),
        limit_(limit) {}

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override {
    TPSIM_CHECK(&device == &device_, "NCCL serves this process's GPU");
    if (group == GroupKind::kPipeline) return message_group(device, members, {});
    const GroupMember member = member_of(*this, group, members);
    if (member.size == 1) return lone_communicator(device, group);
    return made(member, {comm(name_of_group(group, members) + "-all", member), nullptr, nullptr});
  }

  std::unique_ptr<Communicator> message_group(Device& device,
                                              const std::vector<std::int64_t>& members,
                                              MessageWays ways) override {
    const GroupMember member = member_of(*this, GroupKind::kPipeline, members);
    if (member.size == 1) return lone_communicator(device, GroupKind::kPipeline);
    const std::string name = name_of_group(GroupKind::kPipeline, members);
    NcclComms comms;
    if (ways.up) comms.up = comm(name + "-up", member, kMessageChannels);
    if (ways.down) comms.down = comm(name + "-down", member, kMessageChannels);
    return made(member, std::move(comms));
  }

  // Destroys the objects that would have waited for other ranks. Call after the error was reported
  // and all communicators were aborted.
  void let_go() { unfinished_.clear(); }

 private:
  // Returns a name of a group that is the same on all members and different for every call with
  // these members.
  std::string name_of_group(GroupKind group, const std::vector<std::int64_t>& members) {
    std::size_t hash = 0;
    for (const std::int64_t rank : members) {
      hash = hash * 1000003 + static_cast<std::size_t>(rank) + 1;
    }
    const std::string name = fmt::format("{}-{}-{}-{:x}", static_cast<int>(group), members.front(),
                                         members.size(), hash);
    return fmt::format("{}-{}", name, formed_[name]++);
  }

  // Creates one NCCL communicator. The first member creates the id, with which the other members
  // join.
  std::shared_ptr<NcclComm> comm(const std::string& key, const GroupMember& member,
                                 int most_channels = 0) {
    const NcclLibrary& nccl = *nccl_library();
    const FailureElsewhere failure = [this] { return watch_.trouble().text; };
    ncclUniqueId id{};
    if (member.rank == 0) {
      nccl.check(nccl.unique_id(&id), "ncclGetUniqueId");
      demand(rendezvous_.put(key, std::string(id.internal, sizeof id.internal)));
    } else {
      const Result<std::string> text = rendezvous_.get(key, limit_, failure);
      demand(text);
      TPSIM_CHECK(text->size() == sizeof id.internal, "an id of NCCL");
      std::copy(text->begin(), text->end(), id.internal);
    }
    const ncclComm_t comm =
        joined(nccl, {id, member.rank, member.size}, limit_, most_channels, failure);
    auto made = std::make_shared<NcclComm>(nccl, comm, event_mark(), limit_);
    watch_.add(made);
    return made;
  }

  std::unique_ptr<Communicator> made(const GroupMember& member, NcclComms comms) {
    return nccl_communicator(
        device_, member, *nccl_library(), std::move(comms),
        [this](std::shared_ptr<void> links) { unfinished_.push_back(std::move(links)); });
  }

  // Throws the error of a result, because World::communicator() does not return a Result.
  template <class T>
  static void demand(const Result<T>& result) {
    if (!result.ok()) throw CommunicatorAborted(to_string(result.error()));
  }

  CudaDevice& device_;
  Rendezvous& rendezvous_;
  NcclWatch& watch_;
  std::chrono::seconds limit_;
  std::map<std::string, int> formed_;
  std::vector<std::shared_ptr<void>> unfinished_;
};

struct RankOutcome {
  Status status;
  bool thrown_out = false;  // another rank reports the failure
};

// Replaces the status by the first error that the watch found: errors of the device and of NCCL
// after an abort are only consequences.
RankOutcome outcome_after(Status status, const NcclWatch::Trouble& trouble) {
  if (trouble.text.empty()) return {std::move(status)};
  return {Error{ErrorKind::kMissing, trouble.text, "", ""}, trouble.elsewhere};
}

RankOutcome run_in_world(const Launch& launch, CudaDevice& device, Rendezvous& rendezvous,
                         std::chrono::seconds limit, const GpuRankBody& body) {
  NcclWatch::Callbacks callbacks;
  int gpu = 0;
  check_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  callbacks.begin = [=] { static_cast<void>(cudaSetDevice(gpu)); };
  callbacks.elsewhere = [&] { return rendezvous.found(kFailure); };
  callbacks.abort_hangs = [&](const std::string& reason) {
    fmt::print(stderr, "tpsim: error: rank {}: {}; NCCL could not abort its communicators\n",
               launch.rank, reason);
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(ErrorKind::kMissing));
  };
  NcclWatch watch(std::move(callbacks));
  NcclWorld world(launch, device, rendezvous, watch, limit);
  const Status status =
      outcome_of(world, [&](World& ranks) -> Status { return body(ranks, device); });
  RankOutcome outcome = outcome_after(status, watch.trouble());
  if (!outcome.status.ok() && !outcome.thrown_out) {
    // If this write fails, the other ranks still find the failure by their own timeouts.
    static_cast<void>(rendezvous.put(
        kFailure, fmt::format("rank {}: {}", launch.rank, outcome.status.error().message),
        std::chrono::seconds(1)));
  }
  // Aborts after the failure is stored for the other ranks, because an abort may take long.
  if (!outcome.status.ok()) watch.abort(outcome.status.error().message);
  world.let_go();
  return outcome;
}

// Warns if CUDA_DEVICE_MAX_CONNECTIONS is small. Megatron's scripts often set it to 1; pipeline
// messages may then wait for each other forever.
void warn_of_few_queues(const Launch& launch) {
  const std::optional<int> queues = whole_number(process_environment(kQueuesVariable));
  if (launch.rank != 0 || !queues || *queues >= kLeastQueues) return;
  fmt::print(stderr,
             "tpsim: {} is {}: with fewer than {} hardware queues, P2P between stages may "
             "deadlock; unset the variable\n",
             kQueuesVariable, *queues, kLeastQueues);
}

Result<RankOutcome> run_rank(const Launch& launch, const GpuRankBody& body) {
  warn_of_few_queues(launch);
  TPSIM_TRY(const std::chrono::seconds limit, collective_patience(process_environment));
  if (!nccl_library().ok()) return nccl_library().error();
  const GpuCount count = visible_gpus();
  const int gpu = count.gpus > 0 ? launch.local_rank % count.gpus : 0;
  TPSIM_TRY(const auto device, CudaDevice::create(gpu));
  TPSIM_TRY(const auto rendezvous, meet(launch));
  return run_in_world(launch, *device, *rendezvous, limit, body);
}

}  // namespace

// The delay is longer than the time in which a launcher ends this process after rank 0 has failed.
void let_first_speak(const Launch& launch) {
  if (launch.rank == 0 || launch.under_mpi) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(1000 + 20 * std::min(launch.rank, 50)));
}

Status run_under_nccl(const Launch& launch, const GpuRankBody& body) {
  const Result<RankOutcome> ran = run_rank(launch, body);
  const Status status = ran.ok() ? ran->status : Status(ran.error());
  if (status.ok()) return status;
  const bool thrown_out = ran.ok() && ran->thrown_out;
  if (launch.under_mpi) {
    if (thrown_out) throw CommunicatorAborted(status.error().message);
    return status;
  }
  constexpr std::chrono::seconds kForTheFailedOne(10);
  if (thrown_out) std::this_thread::sleep_for(kForTheFailedOne);
  let_first_speak(launch);
  Error error = status.error();
  error.message = fmt::format("rank {}: {}", launch.rank, error.message);
  return error;
}

}  // namespace tpsim
