// Collectives among GPUs by NCCL.
//
// Reductions and gathers run on the device's own stream, in order with its ops. Messages run on two
// streams with a communicator of NCCL each, one for messages to higher ranks of the group and one
// for those to lower ones, so that two neighbours may both send first; what is sent is copied
// before. Messages are for pipeline groups alone. Sums are NCCL's: their order depends on the
// number of ranks, and 16-bit sums are rounded at every hop.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "ranks/communicator.h"
#include "ranks/nccl/nccl_comm.h"

namespace tpsim {

// The communicators of NCCL that a group needs; `up` and `down` in pipeline groups only.
struct NcclComms {
  std::shared_ptr<NcclComm> all, up, down;
};

class NcclCommunicator final : public Communicator {
 public:
  struct Member {
    GroupKind group{};
    int rank = 0;
    int size = 1;
  };
  NcclCommunicator(CudaDevice& device, Member member, const NcclLibrary& nccl, NcclComms comms);
  ~NcclCommunicator() override;

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override;
  void do_all_gather(const Tensor& part, const Tensor& all) override;
  void do_reduce_scatter(const Tensor& all, const Tensor& part) override;
  void do_all_to_all(const Tensor& from, const Tensor& to) override;
  void do_broadcast(const Tensor& x, int root) override;
  void do_send(const Tensor& x, int to) override;
  void do_receive(const Tensor& x, int from) override;

 private:
  // A direction of messages.
  struct Direction {
    std::shared_ptr<NcclComm> comm;
    cudaStream_t stream = nullptr;
  };
  // A copy on its way, with the event after which it may be forgotten.
  struct Sent {
    void* copy = nullptr;
    cudaEvent_t done = nullptr;
  };

  const Direction& direction(int from, int to) const;
  void connect_neighbours();
  void stream_waits(cudaStream_t waiting, cudaStream_t first);
  void forget_sent(bool wait);

  CudaDevice& cuda_;
  const NcclLibrary& nccl_;
  std::shared_ptr<NcclComm> all_;
  Direction up_, down_;
  cudaEvent_t handover_ = nullptr;
  std::vector<Sent> sent_;
};

}  // namespace tpsim
