// Communicator of the meta device, whose tensors have no storage. It records collectives and moves
// no data.
#pragma once

#include "ranks/communicator.h"

namespace tpsim {

class MetaCommunicator : public Communicator {
 public:
  using Communicator::Communicator;

 protected:
  void do_all_reduce(const Tensor&, ReduceOp) override {}
  void do_all_gather(const Tensor&, const Tensor&) override {}
  void do_reduce_scatter(const Tensor&, const Tensor&) override {}
  void do_all_to_all(const Tensor&, const Tensor&) override {}
  void do_broadcast(const Tensor&, int) override {}
  void do_send(const Tensor&, int) override {}
  void do_receive(const Tensor&, int) override {}
};

}  // namespace tpsim
