#include "kernels/nccl/nccl_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "kernels/cuda/cuda_check.h"
#include "kernels/lone_world.h"
#include "kernels/nccl/nccl_communicator.h"
#include "kernels/nccl/rendezvous.h"

namespace tpsim {
namespace {

constexpr auto kMeetingTime = std::chrono::seconds(300);

// Looks at all lines a few times a second; the first trouble aborts all of them.
class Watch {
 public:
  Watch(int gpu, std::chrono::seconds limit) : gpu_(gpu), limit_(limit) {
    thread_ = std::thread([this] { look(); });
  }
  ~Watch() {
    ends_ = true;
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void add(const std::shared_ptr<NcclLine>& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  // Empty while all is well.
  std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  void look() {
    static_cast<void>(cudaSetDevice(gpu_));
    while (!ends_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const std::lock_guard lock(mutex_);
      if (trouble_.empty()) find_trouble();
    }
  }
  void find_trouble() {
    for (const std::weak_ptr<NcclLine>& weak : lines_) {
      const auto line = weak.lock();
      if (line == nullptr) continue;
      if (const auto trouble = line->trouble(limit_)) trouble_ = *trouble;
    }
    if (trouble_.empty()) return;
    for (const std::weak_ptr<NcclLine>& weak : lines_) {
      if (const auto line = weak.lock()) line->abort(trouble_);
    }
  }

  int gpu_;
  std::chrono::seconds limit_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<NcclLine>> lines_;
  std::string trouble_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

class NcclWorld final : public World {
 public:
  NcclWorld(const Launch& launch, CudaDevice& device, Rendezvous& rendezvous, Watch& watch)
      : launch_(launch), device_(device), rendezvous_(rendezvous), watch_(watch) {}

  int rank() const override { return launch_.rank; }
  int size() const override { return launch_.size; }

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override {
    TPSIM_CHECK(&device == &device_, "NCCL serves this process's GPU");
    const auto me = std::find(members.begin(), members.end(), rank());
    TPSIM_CHECK(me != members.end(), "a rank forms groups that it belongs to");
    if (members.size() == 1) return lone_communicator(device, group);
    const NcclCommunicator::Member member{group, static_cast<int>(me - members.begin()),
                                          static_cast<int>(members.size())};
    const std::string name = name_of_group(group, members);
    NcclLines lines;
    lines.all = line(name + "-all", member);
    if (group == GroupKind::kPipeline) {
      lines.up = line(name + "-up", member);
      lines.down = line(name + "-down", member);
    }
    return std::make_unique<NcclCommunicator>(device_, member, *nccl_library(), lines);
  }

 private:
  // Distinct for every call with these members, and the same on all of them.
  std::string name_of_group(GroupKind group, const std::vector<std::int64_t>& members) {
    std::size_t hash = 0;
    for (const std::int64_t rank : members) {
      hash = hash * 1000003 + static_cast<std::size_t>(rank) + 1;
    }
    const std::string name = fmt::format("{}-{}-{}-{:x}", static_cast<int>(group), members.front(),
                                         members.size(), hash);
    return fmt::format("{}-{}", name, formed_[name]++);
  }

  // The first member draws the id that the others join by.
  std::shared_ptr<NcclLine> line(const std::string& key, const NcclCommunicator::Member& member) {
    const NcclLibrary& nccl = *nccl_library();
    ncclUniqueId id{};
    if (member.rank == 0) {
      nccl.check(nccl.unique_id(&id), "ncclGetUniqueId");
      demand(rendezvous_.put(key, std::string(id.internal, sizeof id.internal)));
    } else {
      const Result<std::string> text = rendezvous_.get(key, kMeetingTime);
      demand(text);
      TPSIM_CHECK(text->size() == sizeof id.internal, "an id of NCCL");
      std::copy(text->begin(), text->end(), id.internal);
    }
    ncclComm_t comm = nullptr;
    nccl.check(nccl.init_rank(&comm, member.size, id, member.rank), "joining a group");
    auto made = std::make_shared<NcclLine>(nccl, comm);
    watch_.add(made);
    return made;
  }

  // World::communicator has no way to fail but to throw.
  template <class T>
  static void demand(const Result<T>& result) {
    if (!result.ok()) throw CommunicatorAborted(to_string(result.error()));
  }

  const Launch& launch_;
  CudaDevice& device_;
  Rendezvous& rendezvous_;
  Watch& watch_;
  std::map<std::string, int> formed_;
};

Status run_rank(const Launch& launch, const GpuRankBody& body) {
  TPSIM_TRY(const std::chrono::seconds limit, collective_patience(process_environment));
  if (!nccl_library().ok()) return nccl_library().error();
  const GpuCount count = visible_gpus();
  const int gpu = count.gpus > 0 ? launch.local_rank % count.gpus : 0;
  TPSIM_TRY(const auto device, CudaDevice::create(gpu));
  TPSIM_TRY(const auto rendezvous, meet(launch));
  Watch watch(gpu, limit);
  NcclWorld world(launch, *device, *rendezvous, watch);
  const Status status =
      outcome_of(world, [&](World& ranks) -> Status { return body(ranks, *device); });
  // What the device says after an abort is only a consequence.
  if (const std::string trouble = watch.trouble(); !trouble.empty()) {
    return Error{ErrorKind::kBug, trouble, "", ""};
  }
  return status;
}

}  // namespace

Status run_under_nccl(const Launch& launch, const GpuRankBody& body) {
  Status status = run_rank(launch, body);
  if (status.ok()) return status;
  Error error = status.error();
  error.message = fmt::format("rank {}: {}", launch.rank, error.message);
  return error;
}

}  // namespace tpsim
