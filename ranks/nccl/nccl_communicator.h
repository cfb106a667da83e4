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

#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/communicator.h"
#include "ranks/nccl/nccl_comm.h"

namespace tpsim {

// The communicators of NCCL that a group needs: `all` for collectives, `up` and `down` for
// messages. What the group does not do needs none.
struct NcclComms {
  std::shared_ptr<NcclComm> all, up, down;
};

// What waits for other ranks at the communicator's end. While an exception passes they may never
// come, so that `keep` takes it then, for an end after they have been told.
using KeepLinks = std::function<void(std::shared_ptr<void>)>;
std::unique_ptr<Communicator> nccl_communicator(CudaDevice& device, GroupMember member,
                                                const NcclLibrary& nccl, NcclComms comms,
                                                KeepLinks keep);

}  // namespace tpsim
