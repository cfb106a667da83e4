// Collectives among GPUs by NCCL.
//
// Reductions and gathers run on the device's own stream, in order with its ops. Messages run on two
// streams with a communicator of NCCL each, one for messages to higher ranks of the group and one
// for those to lower ones, so that two neighbours may both send first; what is sent is copied
// before. Messages are for pipeline groups alone, and those have nothing else. Reductions beside
// ops have a stream of their own. Sums are NCCL's: their order depends on the number of ranks, and
// 16-bit sums are rounded at every hop.
#pragma once

#include <functional>
#include <memory>

#include "kernels/cuda/cuda_device.h"
#include "ranks/communicator.h"
#include "ranks/nccl/nccl_comm.h"

namespace tpsim {

// The communicators of NCCL that a group needs: `all` for collectives, `up` and `down` for
// messages. What the group does not do needs none.
struct NcclComms {
  std::shared_ptr<NcclComm> all, up, down;
};

class NcclCommunicator final : public Communicator {
 public:
  // What waits for other ranks at its end. While an exception passes they may never come, so that
  // `keep` takes it then, for an end after they have been told.
  using Keep = std::function<void(std::shared_ptr<void>)>;
  NcclCommunicator(CudaDevice& device, GroupMember member, const NcclLibrary& nccl, NcclComms comms,
                   Keep keep);
  ~NcclCommunicator() override;

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override;
  void do_all_gather(const Tensor& part, const Tensor& all) override;
  void do_reduce_scatter(const Tensor& all, const Tensor& part) override;
  void do_all_to_all(const Tensor& from, const Tensor& to) override;
  void do_broadcast(const Tensor& x, int root) override;
  void do_send(const Tensor& x, int to) override;
  void do_receive(const Tensor& x, int from) override;
  void do_begin(const Begun& call) override;
  void do_finish() override;

 private:
  // Messages to higher ranks, or to lower ones.
  struct Direction {
    std::shared_ptr<NcclComm> comm;
    cudaStream_t stream = nullptr;
  };
  class Outbox;
  struct Links;

  const Direction& direction(int from, int to) const;
  void connect_neighbours();
  void greet(const Direction& direction, bool upward, std::byte* words);
  void stream_waits(cudaStream_t waiting, cudaStream_t first);
  void all_reduce_on(cudaStream_t stream, const Tensor& x, ReduceOp op);
  void reduce_scatter_on(cudaStream_t stream, const Tensor& all, const Tensor& part);

  CudaDevice& cuda_;
  const NcclLibrary& nccl_;
  int exceptions_;  // in flight when this was made
  Keep keep_;
  std::shared_ptr<Links> links_;
};

}  // namespace tpsim
