// Collectives among MPI processes, over host memory.
//
// Reductions exchange shares with MPI and add them here, in rank order and with one rounding, so
// that ranks as processes get the same bits as ranks as threads; it is also faster than Open MPI's
// own reductions above a few kilobytes, and its Reduce_scatter_block is slower still.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "ranks/communicator.h"
#include "ranks/mpi/mpi_reduction.h"

namespace tpsim {

class MpiCommunicator final : public Communicator {
 public:
  // Takes over `comm`, which has the group's members in the group's order.
  MpiCommunicator(Device& device, GroupKind group, MPI_Comm comm);
  ~MpiCommunicator() override;

 protected:
  void do_all_reduce(const Tensor& x, ReduceOp op) override;
  void do_all_gather(const Tensor& part, const Tensor& all) override;
  void do_reduce_scatter(const Tensor& all, const Tensor& part) override;
  void do_all_to_all(const Tensor& from, const Tensor& to) override;
  void do_broadcast(const Tensor& x, int root) override;
  void do_send(const Tensor& x, int to) override;
  void do_receive(const Tensor& x, int from) override;
  void do_finish() override;
  bool needs_host() const override { return true; }
  bool do_advance(const Begun& call, bool wait) override;

 private:
  // A message under way, with its own copy of the data.
  struct Pending {
    MPI_Request request;
    std::vector<std::byte> data;
  };
  // Shares of an array, by rank: where each begins and how many elements it has.
  struct Shares {
    std::vector<int> first, count;
  };

  Shares even_shares(std::int64_t elements) const;
  // Sends share r of `data` to rank r, adds up what arrives of this rank's share, into `result`.
  void reduce_own_share(const void* data, const Shares& shares, DType dtype, ReduceOp op,
                        void* result);
  void all_reduce_small(const Tensor& x, ReduceOp op);
  std::byte* scratch(std::int64_t bytes);
  std::vector<std::byte> unused_buffer();

  MPI_Comm comm_;
  std::vector<std::byte> scratch_;
  std::vector<Pending> pending_;
  std::optional<MpiReduction> under_way_;
};

}  // namespace tpsim
