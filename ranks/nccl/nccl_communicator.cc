#include "ranks/nccl/nccl_communicator.h"

#include <exception>
#include <set>
#include <utility>

#include "kernels/cuda/runtime/cuda_check.h"
#include "ranks/world.h"

namespace tpsim {
namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return ncclFloat32;
    case DType::kBFloat16: return ncclBfloat16;
    case DType::kFloat16: return ncclFloat16;
    case DType::kInt32: return ncclInt32;
    case DType::kUInt8: return ncclUint8;
    default: break;
  }
  TPSIM_CHECK(false, "NCCL has no type for " + std::string(name_of(dtype)));
}

std::size_t count_of(const Tensor& x) { return static_cast<std::size_t>(x.elements()); }

// Number of SMs that GEMMs leave free for an overlapped collective. On an H200 a GEMM of 1.06 ms
// and a kernel of 0.27 ms take 1.32 ms without free SMs and 1.14 ms with them (tpsim_bench_gpu
// --beside).
constexpr int kSpared = 16;

constexpr std::int64_t kWord = kBlockAlignment;  // distance in bytes of the two words of greet()

bool goes_on(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

// Returns a stream with high priority: its blocks are scheduled before those of waiting ops. A GEMM
// that starts at the same time would otherwise occupy all SMs.
cudaStream_t new_stream() {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
             "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
             "cudaStreamCreateWithPriority");
  return stream;
}

// The staging buffer of a message, and the event after which the buffer may be reused.
class Outbox {
 public:
  explicit Outbox(CudaDevice& device) : device_(device), left_(new_event()) {}
  ~Outbox() {
    if (data_ != nullptr) device_.give_back_unrecorded(data_);
    static_cast<void>(cudaEventDestroy(left_));
  }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Issues a copy of x to the buffer, ordered after the send of the previous message.
  void* copy_of(const Tensor& x) {
    check_cuda(cudaStreamWaitEvent(device_.stream(), left_, 0), "cudaStreamWaitEvent");
    if (bytes_ < x.bytes()) {
      if (data_ != nullptr) {
        check_cuda(cudaEventSynchronize(left_), "a message");
        device_.give_back_unrecorded(std::exchange(data_, nullptr));
      }
      bytes_ = 0;
      data_ = device_.acquire_unrecorded(x.bytes());
      bytes_ = x.bytes();
    }
    check_cuda(cudaMemcpyAsync(data_, x.raw(), static_cast<std::size_t>(x.bytes()),
                               cudaMemcpyDeviceToDevice, device_.stream()),
               "the copy of a message");
    return data_;
  }
  void leaves(cudaStream_t stream) {
    check_cuda(cudaEventRecord(left_, stream), "cudaEventRecord");
  }

 private:
  CudaDevice& device_;
  cudaEvent_t left_;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Communicator and stream of the messages to higher ranks, or to lower ranks.
struct Direction {
  std::shared_ptr<NcclComm> comm;
  cudaStream_t stream = nullptr;
};

struct Links {
  std::shared_ptr<NcclComm> all;
  Direction up, down;
  cudaStream_t beside = nullptr;  // stream of non-blocking reductions, created on demand
  cudaEvent_t handover = new_event();
  std::array<std::unique_ptr<Outbox>, kMessageCopies> outboxes;
  std::size_t next = 0;  // index in outboxes

  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Waits for the streams of both directions before it destroys any of them, because a neighbor may
  // still wait for a message in the other direction.
  ~Links() {
    for (const Direction* direction : {&up, &down}) {
      if (direction->stream != nullptr) static_cast<void>(cudaStreamSynchronize(direction->stream));
    }
    if (beside != nullptr) {
      static_cast<void>(cudaStreamSynchronize(beside));
      static_cast<void>(cudaStreamDestroy(beside));
    }
    for (std::unique_ptr<Outbox>& outbox : outboxes) outbox.reset();
    for (const Direction* direction : {&up, &down}) {
      if (direction->stream != nullptr) static_cast<void>(cudaStreamDestroy(direction->stream));
    }
    static_cast<void>(cudaEventDestroy(handover));
  }
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(CudaDevice& device, GroupMember member, const NcclLibrary& nccl, NcclComms comms,
                   KeepLinks keep)
      : Communicator(device, member.group, member.rank, member.size),
        cuda_(device),
        nccl_(nccl),
        exceptions_(std::uncaught_exceptions()),
        keep_(std::move(keep)),
        links_(std::make_shared<Links>()) {
    links_->all = std::move(comms.all);
    if (comms.up != nullptr) links_->up = {std::move(comms.up), new_stream()};
    if (comms.down != nullptr) links_->down = {std::move(comms.down), new_stream()};
    connect_neighbours();
  }

  ~NcclCommunicator() override {
    if (std::uncaught_exceptions() > exceptions_) keep_(std::move(links_));
  }

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override {
    all_reduce_on(cuda_.stream(), x, op);
  }

  void do_reduce_scatter(const Tensor& all, const Tensor& part) override {
    reduce_scatter_on(cuda_.stream(), all, part);
  }

  // The reduction starts after the ops that wrote its data. Ops issued later overlap with it.
  void do_begin(const Begun& call) override {
    if (links_->beside == nullptr) links_->beside = new_stream();
    if (!std::exchange(spares_, true)) cuda_.spare_multiprocessors(kSpared);
    stream_waits(links_->beside, cuda_.stream());
    if (call.scatters()) {
      reduce_scatter_on(links_->beside, call.all, call.part);
    } else {
      all_reduce_on(links_->beside, call.all, call.op);
    }
  }

  void do_finish() override {
    stream_waits(cuda_.stream(), links_->beside);
    if (std::exchange(spares_, false)) cuda_.spare_multiprocessors(-kSpared);
  }

  void do_all_gather(const Tensor& part, const Tensor& all) override {
    links_->all->enqueue("all_gather", cuda_.stream(), [&](ncclComm_t comm) {
      return nccl_.all_gather(part.raw(), all.raw(), count_of(part), type_of(part.dtype()), comm,
                              cuda_.stream());
    });
  }

  // Uses one NCCL group, so that all transfers run concurrently.
  void do_all_to_all(const Tensor& from, const Tensor& to) override {
    const std::int64_t part = from.elements() / size();
    const auto count = static_cast<std::size_t>(part);
    const ncclDataType_t type = type_of(from.dtype());
    links_->all->enqueue("all_to_all", cuda_.stream(), [&](ncclComm_t comm) {
      ncclResult_t result = nccl_.group_start();
      for (int peer = 0; peer < size() && goes_on(result); ++peer) {
        const void* const outgoing = from.slice(peer * part, part).raw();
        void* const incoming = to.slice(peer * part, part).raw();
        result = nccl_.send(outgoing, count, type, peer, comm, cuda_.stream());
        if (!goes_on(result)) break;
        result = nccl_.receive(incoming, count, type, peer, comm, cuda_.stream());
      }
      // Ends the group after a failure too, because later calls would not start inside an open
      // group.
      const ncclResult_t ended = nccl_.group_end();
      return goes_on(result) ? ended : result;
    });
  }

  void do_broadcast(const Tensor& x, int root) override {
    links_->all->enqueue("broadcast", cuda_.stream(), [&](ncclComm_t comm) {
      return nccl_.broadcast(x.raw(), x.raw(), count_of(x), type_of(x.dtype()), root, comm,
                             cuda_.stream());
    });
  }

  void do_send(const Tensor& x, int to) override {
    const Direction& direction = this->direction(rank(), to);
    std::unique_ptr<Outbox>& outbox = links_->outboxes[links_->next];
    links_->next = (links_->next + 1) % links_->outboxes.size();
    if (outbox == nullptr) outbox = std::make_unique<Outbox>(cuda_);
    const void* const copy = outbox->copy_of(x);
    stream_waits(direction.stream, cuda_.stream());
    direction.comm->enqueue("send", direction.stream, [&](ncclComm_t comm) {
      return nccl_.send(copy, count_of(x), type_of(x.dtype()), to, comm, direction.stream);
    });
    outbox->leaves(direction.stream);
  }

  void do_receive(const Tensor& x, int from) override {
    const Direction& direction = this->direction(from, rank());
    stream_waits(direction.stream, cuda_.stream());  // earlier ops may still use x's memory
    direction.comm->enqueue("receive", direction.stream, [&](ncclComm_t comm) {
      return nccl_.receive(x.raw(), count_of(x), type_of(x.dtype()), from, comm, direction.stream);
    });
    stream_waits(cuda_.stream(), direction.stream);
  }

 private:
  void all_reduce_on(cudaStream_t stream, const Tensor& x, ReduceOp op) {
    const ncclRedOp_t reduction = op == ReduceOp::kSum ? ncclSum : ncclMax;
    links_->all->enqueue("all_reduce", stream, [&](ncclComm_t comm) {
      return nccl_.all_reduce(x.raw(), x.raw(), count_of(x), type_of(x.dtype()), reduction, comm,
                              stream);
    });
  }

  void reduce_scatter_on(cudaStream_t stream, const Tensor& all, const Tensor& part) {
    links_->all->enqueue("reduce_scatter", stream, [&](ncclComm_t comm) {
      return nccl_.reduce_scatter(all.raw(), part.raw(), count_of(part), type_of(part.dtype()),
                                  ncclSum, comm, stream);
    });
  }

  const Direction& direction(int from, int to) const {
    const Direction& way = from < to ? links_->up : links_->down;
    TPSIM_CHECK(way.comm != nullptr, "messages travel in groups made for them");
    return way;
  }

  void stream_waits(cudaStream_t waiting, cudaStream_t first) {
    check_cuda(cudaEventRecord(links_->handover, first), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(waiting, links_->handover, 0), "cudaStreamWaitEvent");
  }

  // NCCL sets up a connection at first use, when both sides wait for each other. Two ranks that
  // both send first would deadlock. Neighbors therefore first exchange a one-byte message in both
  // directions, and wait after both are issued.
  void connect_neighbours() {
    const auto ways = {std::pair{&links_->up, true}, std::pair{&links_->down, false}};
    auto* const words = static_cast<std::byte*>(cuda_.acquire_unrecorded(2 * kWord));
    for (const auto& [direction, upward] : ways) {
      if (direction->comm != nullptr) greet(*direction, upward, words);
    }
    for (const auto& [direction, upward] : ways) {
      if (direction->comm != nullptr) {
        check_cuda(cudaStreamSynchronize(direction->stream), "connecting neighbours");
      }
    }
    cuda_.give_back_unrecorded(words);
  }

  // Exchanges one byte with the neighbors in one direction. The last and the first rank are
  // neighbors if the group has messages in both directions.
  void greet(const Direction& direction, bool upward, std::byte* words) {
    const bool goes_round = links_->up.comm != nullptr && links_->down.comm != nullptr;
    std::set<int> neighbours;
    for (const int peer : {rank() + 1, rank() - 1}) {
      const bool exists = peer >= 0 && peer < size();
      if (exists || goes_round) neighbours.insert((peer + size()) % size());
    }
    direction.comm->enqueue("connecting neighbours", direction.stream, [&](ncclComm_t comm) {
      ncclResult_t result = nccl_.group_start();
      for (const int peer : neighbours) {
        if (!goes_on(result)) break;
        const bool sends = (peer > rank()) == upward;
        result = sends ? nccl_.send(words, 1, ncclUint8, peer, comm, direction.stream)
                       : nccl_.receive(words + kWord, 1, ncclUint8, peer, comm, direction.stream);
      }
      const ncclResult_t ended = nccl_.group_end();
      return goes_on(result) ? ended : result;
    });
  }

  CudaDevice& cuda_;
  const NcclLibrary& nccl_;
  int exceptions_;       // exceptions in flight at construction
  bool spares_ = false;  // SMs are reserved for reductions in flight
  KeepLinks keep_;
  std::shared_ptr<Links> links_;
};

}  // namespace

std::unique_ptr<Communicator> nccl_communicator(CudaDevice& device, GroupMember member,
                                                const NcclLibrary& nccl, NcclComms comms,
                                                KeepLinks keep) {
  return std::make_unique<NcclCommunicator>(device, member, nccl, std::move(comms),
                                            std::move(keep));
}

}  // namespace tpsim
