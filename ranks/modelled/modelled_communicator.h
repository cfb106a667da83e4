// Collectives that wait as long as a model says; see ranks/modelled/modelled_world.h.
#pragma once

#include <vector>

#include "ranks/communicator.h"
#include "ranks/modelled/modelled_world.h"

namespace tpsim {

class ModelledCommunicator final : public Communicator {
 public:
  ModelledCommunicator(Device& device, GroupMember member, CollectiveSeconds seconds,
                       std::int64_t integers_below);

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override;
  void do_all_gather(const Tensor& part, const Tensor& all) override;
  void do_reduce_scatter(const Tensor& all, const Tensor& part) override;
  void do_all_to_all(const Tensor& from, const Tensor& to) override;
  void do_broadcast(const Tensor& x, int root) override;
  void do_send(const Tensor& x, int to) override;
  void do_receive(const Tensor& x, int from) override;

 private:
  template <class Work>
  void timed(CollectiveKind kind, std::int64_t bytes, Work work);
  void fill_on_device(const Tensor& x);
  void fill(const Tensor& x);

  CollectiveSeconds seconds_;
  std::int64_t integers_below_;
  std::vector<std::byte> contents_;  // of one dtype, as long as the longest tensor that arrived
  DType dtype_ = DType::kFloat32;    // of contents_
};

}  // namespace tpsim
