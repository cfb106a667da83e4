// Collectives among the threads of one process, over host memory.
//
// Reductions add in rank order and round once, so that every member and every run gets the same
// bits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ranks/communicator.h"
#include "ranks/threads/thread_group.h"

namespace tpsim {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(Device& device, GroupKind group, int rank,
                     std::shared_ptr<ThreadGroup> threads)
      : Communicator(device, group, rank, threads->size()), threads_(std::move(threads)) {}
  ~ThreadCommunicator() override;

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override;
  void do_all_gather(const Tensor& part, const Tensor& all) override;
  void do_reduce_scatter(const Tensor& all, const Tensor& part) override;
  void do_all_to_all(const Tensor& from, const Tensor& to) override;
  void do_broadcast(const Tensor& x, int root) override;
  void do_send(const Tensor& x, int to) override;
  void do_receive(const Tensor& x, int from) override;
  bool needs_host() const override { return true; }
  bool do_advance(const Begun& call, bool wait) override;

 private:
  // Of the reduction that is under way: the others come, or they still use what was published.
  enum class Stage : std::uint8_t { kNone, kOthersCome, kOthersRead };

  bool others_are_there(bool wait);

  std::shared_ptr<ThreadGroup> threads_;
  Stage stage_ = Stage::kNone;
  ThreadGroup::Phase phase_ = 0;
};

}  // namespace tpsim
