// Collectives among GPUs by NCCL.
//
// Collectives run on the device's own stream, in order with its ops. P2P messages use two streams
// with one NCCL communicator each: one to higher ranks, one to lower ranks. Two neighbours may
// therefore both send first. Sent data is copied before. Only pipeline groups have messages, and
// they have no collectives. Non-blocking reductions have a separate stream. Sums are NCCL's: their
// order depends on the number of ranks, and 16-bit sums are rounded at every hop.
#pragma once

#include <functional>
#include <memory>

#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/communicator.h"
#include "ranks/nccl/nccl_comm.h"

namespace tpsim {

// NCCL communicators of a group: `all` for collectives, `up` and `down` for messages. Unused ones
// are null.
struct NcclComms {
  std::shared_ptr<NcclComm> all, up, down;
};

// Keeps objects whose destructors would wait for other ranks. If the communicator is destroyed
// during an exception, other ranks may be gone. `keep` then takes these objects, to destroy them
// after the abort.
using KeepLinks = std::function<void(std::shared_ptr<void>)>;
std::unique_ptr<Communicator> nccl_communicator(CudaDevice& device, GroupMember member,
                                                const NcclLibrary& nccl, NcclComms comms,
                                                KeepLinks keep);

}  // namespace tpsim
