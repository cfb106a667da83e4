// The NCCL functions that tpsim calls, for processes of one machine with shared memory.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranks/nccl/nccl_library.h"
#include "tests/emulated_gpu/launch.h"
#include "tests/emulated_gpu/stream.h"
#include "tests/emulated_gpu/thread_block.h"
#include "tests/emulated_gpu/transfers.h"

namespace tpsim {
namespace {

using emulated::at_work;
using emulated::CollectiveCall;
using emulated::Comm;
using emulated::Transfer;

// GPU memory of a communicator, equal to the value in data/stacks/reference.json.
constexpr std::ptrdiff_t kBuffers = std::ptrdiff_t{200} << 20;

Comm& comm_of(ncclComm_t comm) { return *reinterpret_cast<std::shared_ptr<Comm>*>(comm)->get(); }

// Calls between ncclGroupStart() and ncclGroupEnd() run concurrently.
struct Group {
  int depth = 0;
  cudaStream_t stream = nullptr;
  std::shared_ptr<Comm> comm;
  std::vector<std::shared_ptr<Transfer>> transfers;
  std::vector<ncclComm_t> aborted;
};
thread_local Group group;

void queue(cudaStream_t stream, std::vector<std::shared_ptr<Transfer>> transfers) {
  emulated::enqueue(stream, [transfers = std::move(transfers)]() mutable {
    std::erase_if(transfers, [](const auto& one) { return one->step(); });
    return transfers.empty();
  });
}

// As in non-blocking communicators of NCCL 2.23 and later, a library thread launches the call. Work
// that is put on the stream before the launch completes runs first.
ncclResult_t start(const std::shared_ptr<Comm>& comm, cudaStream_t stream,
                   std::vector<std::shared_ptr<Transfer>> transfers) {
  if (comm->starting) emulated::end_with("a call of NCCL before the last one was taken");
  comm->asked = 0;
  comm->starting = [=] { queue(stream, transfers); };
  return ncclInProgress;
}

ncclResult_t issue(const std::shared_ptr<Comm>& comm, std::shared_ptr<Transfer> transfer,
                   cudaStream_t stream) {
  if (group.depth == 0) return start(comm, stream, {std::move(transfer)});
  if (!group.transfers.empty() && (group.stream != stream || group.comm != comm)) {
    return ncclInvalidUsage;
  }
  group.stream = stream;
  group.comm = comm;
  group.transfers.push_back(std::move(transfer));
  return ncclSuccess;
}

std::shared_ptr<Comm> shared(ncclComm_t comm) {
  return *reinterpret_cast<std::shared_ptr<Comm>*>(comm);
}

ncclResult_t version(int* number) {
  *number = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t unique_id(ncclUniqueId* id) {
  static std::atomic<int> drawn{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::snprintf(id->internal, sizeof id->internal, "/tpsim-nccl-%d-%d-%lld",
                static_cast<int>(getpid()), drawn++, static_cast<long long>(now));
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  const auto lock = at_work();
  if (rank < 0 || rank >= size) return ncclInvalidArgument;
  auto* const made =
      new std::shared_ptr<Comm>(std::make_shared<Comm>(std::string(id.internal), rank, size));
  *comm = reinterpret_cast<ncclComm_t>(made);
  emulated::take_memory(kBuffers);
  return ncclInProgress;
}

ncclResult_t async_error(ncclComm_t comm, ncclResult_t* result) {
  const auto lock = at_work();
  emulated::work_a_little();
  constexpr int kAskedBefore = 3;
  Comm& its = comm_of(comm);
  if (its.starting && ++its.asked >= kAskedBefore) std::exchange(its.starting, nullptr)();
  *result = its.is_complete() && !its.starting ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t finalize(ncclComm_t comm) {
  const auto lock = at_work();
  emulated::work_until(nullptr, [&] { return comm_of(comm).under_way == 0; });
  return ncclSuccess;
}

void free_comm(ncclComm_t comm) {
  delete reinterpret_cast<std::shared_ptr<Comm>*>(comm);
  emulated::take_memory(-kBuffers);
}

ncclResult_t destroy(ncclComm_t comm) {
  const auto lock = at_work();
  free_comm(comm);
  return ncclSuccess;
}

// Waits for the communicator's last kernel, which may be queued behind others on its stream. In a
// group, waits after all communicators of the group were aborted.
void wait_and_free(ncclComm_t comm) {
  emulated::work_until(nullptr, [&] { return comm_of(comm).under_way == 0; });
  free_comm(comm);
}

ncclResult_t abort_comm(ncclComm_t comm) {
  const auto lock = at_work();
  comm_of(comm).aborted = true;
  comm_of(comm).starting = nullptr;
  if (group.depth > 0) {
    group.aborted.push_back(comm);
  } else {
    wait_and_free(comm);
  }
  return ncclSuccess;
}

const char* error_string(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "an error of the emulated NCCL";
}
const char* last_error(ncclComm_t) { return ""; }

using Kind = CollectiveCall::Kind;

ncclResult_t issue_call(const CollectiveCall& call, ncclComm_t comm, cudaStream_t stream) {
  const auto lock = at_work();
  return issue(shared(comm), emulated::collective(shared(comm), call), stream);
}

const std::byte* bytes(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* bytes(void* data) { return static_cast<std::byte*>(data); }

ncclResult_t all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue_call({Kind::kAllReduce, bytes(from), bytes(to), count, type, op}, comm, stream);
}
ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclComm_t comm, cudaStream_t stream) {
  return issue_call({Kind::kAllGather, bytes(from), bytes(to), count, type}, comm, stream);
}
ncclResult_t reduce_scatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue_call({Kind::kReduceScatter, bytes(from), bytes(to), count, type, op}, comm, stream);
}
ncclResult_t broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  return issue_call({Kind::kBroadcast, bytes(from), bytes(to), count, type, ncclSum, root}, comm,
                    stream);
}

ncclResult_t send(const void* from, std::size_t count, ncclDataType_t type, int peer,
                  ncclComm_t comm, cudaStream_t stream) {
  const auto lock = at_work();
  auto* const data = const_cast<std::byte*>(bytes(from));
  return issue(shared(comm), emulated::sending(shared(comm), {data, count, type, peer}), stream);
}
ncclResult_t receive(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream) {
  const auto lock = at_work();
  return issue(shared(comm), emulated::receiving(shared(comm), {bytes(to), count, type, peer}),
               stream);
}

ncclResult_t group_start() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t group_end() {
  const auto lock = at_work();
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  for (ncclComm_t const comm : std::exchange(group.aborted, {})) wait_and_free(comm);
  if (group.transfers.empty()) return ncclSuccess;
  return start(std::exchange(group.comm, nullptr), group.stream,
               std::exchange(group.transfers, {}));
}

}  // namespace

const Result<NcclLibrary>& nccl_library() {
  static const Result<NcclLibrary> library =
      NcclLibrary{version,     unique_id,    init_rank,  finalize,    destroy,    abort_comm,
                  async_error, error_string, last_error, all_reduce,  all_gather, reduce_scatter,
                  broadcast,   send,         receive,    group_start, group_end,  "emulated"};
  return library;
}

}  // namespace tpsim
