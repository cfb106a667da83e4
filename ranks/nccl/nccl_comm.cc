#include "ranks/nccl/nccl_comm.h"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "kernels/cuda/runtime/cuda_check.h"
#include "ranks/world.h"

namespace tpsim {
namespace {

using Clock = std::chrono::steady_clock;

class EventMark final : public WorkMark {
 public:
  EventMark() {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~EventMark() override { static_cast<void>(cudaEventDestroy(event_)); }
  EventMark(const EventMark&) = delete;
  EventMark& operator=(const EventMark&) = delete;

  void set(cudaStream_t stream) override {
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  bool reached() const override { return cudaEventQuery(event_) != cudaErrorNotReady; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Waits for the final result of a call and returns it; ncclInProgress if it takes longer than
// `limit` or `stops` returns true. `state` queries NCCL. First yields, because NCCL launches a
// collective of a non-blocking communicator within about 10 us, less than the shortest sleep. Then
// sleeps, because forming a group takes longer.
template <class State, class Stops>
ncclResult_t settled(ncclResult_t result, std::chrono::milliseconds limit, State state,
                     Stops stops) {
  constexpr std::chrono::microseconds kPause(50), kSoon(200);
  const auto begin = Clock::now();
  const auto waits = [&](Clock::time_point now) {
    return result == ncclInProgress && now < begin + limit && !stops();
  };
  for (auto now = begin; waits(now); now = Clock::now()) {
    if (now < begin + kSoon) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
    result = state();
  }
  return result;
}

template <class State>
ncclResult_t settled(ncclResult_t result, std::chrono::milliseconds limit, State state) {
  return settled(result, limit, state, [] { return false; });
}

std::string seconds_text(std::chrono::milliseconds limit) {
  return fmt::format("{:g} s", std::chrono::duration<double>(limit).count());
}

}  // namespace

void NcclLibrary::check(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CommunicatorAborted(refusal(result, what));
}

std::string NcclLibrary::refusal(ncclResult_t result, const std::string& what) const {
  return fmt::format("{}: NCCL reports {} ({})", what, error_string(result), last_error(nullptr));
}

ncclResult_t NcclLibrary::state_of(ncclComm_t comm) const {
  ncclResult_t now = ncclSuccess;
  const ncclResult_t asked = async_error(comm, &now);
  return asked == ncclSuccess ? now : asked;
}

std::unique_ptr<WorkMark> event_mark() { return std::make_unique<EventMark>(); }

ncclComm_t joined(const NcclLibrary& nccl, NcclInitArgs init, std::chrono::milliseconds limit,
                  int most_channels, const FailureElsewhere& failure) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (most_channels > 0) {
    config.minCTAs = 1;
    config.maxCTAs = most_channels;
  }
  ncclComm_t comm = nullptr;
  const ncclResult_t first = nccl.init_rank(&comm, init.size, init.id, init.rank, &config);
  std::string failed;
  const ncclResult_t result = settled(
      first, limit, [&] { return nccl.state_of(comm); },
      [&] { return failure && !(failed = failure()).empty(); });
  if (result == ncclSuccess) return comm;
  const std::string what = fmt::format("joining a group of {} ranks", init.size);
  const std::string reason =
      !failed.empty() ? fmt::format("{}: {}", what, failed)
      : result == ncclInProgress
          ? fmt::format("{}: the other ranks did not join within {}", what, seconds_text(limit))
          : nccl.refusal(result, what);
  if (comm != nullptr) nccl.abort(comm);
  throw CommunicatorAborted(reason);
}

NcclComm::NcclComm(const NcclLibrary& nccl, ncclComm_t comm, std::unique_ptr<WorkMark> mark,
                   std::chrono::milliseconds limit)
    : nccl_(nccl),
      comm_(comm),
      limit_(limit),
      exceptions_(std::uncaught_exceptions()),
      mark_(std::move(mark)) {}

// Aborts after a failure, because ncclCommFinalize would wait for the other ranks.
NcclComm::~NcclComm() {
  if (!aborted_.empty()) return;
  constexpr std::chrono::seconds kFinalizeLimit(5);
  const bool fails = !failed_.empty() || std::uncaught_exceptions() > exceptions_;
  const ncclResult_t result =
      fails ? ncclInternalError
            : settled(nccl_.finalize(comm_), kFinalizeLimit, [&] { return nccl_.state_of(comm_); });
  if (result == ncclSuccess) {
    nccl_.destroy(comm_);
  } else {
    nccl_.abort(comm_);
  }
}

// Calls NCCL under the lock, so that give_up() waits for the call before the communicator is freed.
// Calls return at once, since communicators are non-blocking.
ncclResult_t NcclComm::called(const Call& call) {
  const std::lock_guard lock(mutex_);
  for (const std::string* reason : {&aborted_, &failed_}) {
    if (!reason->empty()) throw CommunicatorAborted(*reason);
  }
  return call(comm_);
}

void NcclComm::enqueue(const char* what, cudaStream_t stream, const Call& call) {
  const Call state = [this](ncclComm_t comm) { return nccl_.state_of(comm); };
  const ncclResult_t result = settled(called(call), limit_, [&] { return called(state); });
  if (result == ncclSuccess) return note(stream);
  const std::lock_guard lock(mutex_);
  failed_ = result == ncclInProgress ? fmt::format("{}: NCCL did not accept the call within {}",
                                                   what, seconds_text(limit_))
                                     : nccl_.refusal(result, what);
  throw CommunicatorAborted(failed_);
}

// Records that work was issued to the stream, for the timeout in trouble(). While the work before
// the previous mark is unfinished, the mark and its time are kept.
void NcclComm::note(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (waits_ && !mark_->reached()) return;
  mark_->set(stream);
  waits_ = true;
  since_ = Clock::now();
}

std::optional<std::string> NcclComm::trouble() {
  const std::lock_guard lock(mutex_);
  if (!aborted_.empty()) return std::nullopt;
  if (!failed_.empty()) return failed_;
  const ncclResult_t result = nccl_.state_of(comm_);
  if (result != ncclSuccess && result != ncclInProgress) {
    return fmt::format("a collective failed: {} ({})", nccl_.error_string(result),
                       nccl_.last_error(comm_));
  }
  if (waits_ && mark_->reached()) waits_ = false;
  if (!waits_ || Clock::now() - since_ < limit_) return std::nullopt;
  return fmt::format("a collective has not ended within {}: another rank has stopped or hangs",
                     seconds_text(limit_));
}

ncclComm_t NcclComm::give_up(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!aborted_.empty()) return nullptr;
  aborted_ = reason;
  return comm_;
}

void abort_together(const std::vector<std::shared_ptr<NcclComm>>& comms, const std::string& reason,
                    const std::function<void()>& begin) {
  constexpr int kAbortsInGroups = 22200;  // 2.22 in the encoding of ncclGetVersion
  std::vector<ncclComm_t> given_up;
  for (const auto& comm : comms) {
    if (ncclComm_t const one = comm->give_up(reason)) given_up.push_back(one);
  }
  if (given_up.empty()) return;
  const NcclLibrary& nccl = comms.front()->library();
  int version = 0;
  nccl.version(&version);
  if (version >= kAbortsInGroups) {
    nccl.group_start();
    for (ncclComm_t const one : given_up) nccl.abort(one);
    nccl.group_end();
    return;
  }
  std::vector<std::jthread> threads;
  for (ncclComm_t const one : given_up) {
    threads.emplace_back([&nccl, &begin, one] {
      if (begin) begin();
      nccl.abort(one);
    });
  }
}

}  // namespace tpsim
