// Collectives among GPUs by NCCL.
//
// Collectives run on the device's own stream, in order with its ops. Non-blocking reductions run on
// a separate stream. P2P messages use two streams with one NCCL communicator each: one to higher
// ranks, one to lower ranks. Sent data is copied to a staging buffer first, so two neighbors may
// both send before they receive. Only pipeline groups have P2P messages, and they have no
// collectives. NCCL computes the sums: their order depends on the number of ranks, and 16-bit sums
// are rounded at every hop.
#pragma once

#include <functional>
#include <memory>

#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/communicator.h"
#include "ranks/nccl/nccl_comm.h"

namespace tpsim {

// NCCL communicators of a group: `all` for collectives, `up` and `down` for P2P messages to higher
// and lower ranks. Unused communicators are null.
struct NcclComms {
  std::shared_ptr<NcclComm> all, up, down;
};

// Receives objects whose destructors would wait for other ranks. If an exception destroys the
// communicator, other ranks may be gone. The owner of `keep` then destroys the objects after the
// abort.
using KeepLinks = std::function<void(std::shared_ptr<void>)>;
std::unique_ptr<Communicator> nccl_communicator(CudaDevice& device, GroupMember member,
                                                const NcclLibrary& nccl, NcclComms comms,
                                                KeepLinks keep);

}  // namespace tpsim
