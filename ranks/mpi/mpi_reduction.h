// A reduction that goes on in steps, by messages that nobody waits for.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "kernels/tensor.h"
#include "ranks/communicator.h"

namespace tpsim {

// Every rank sums up its share of each piece and, of an all-reduce, sends the sum to the others.
// Sums run in rank order with one rounding, as those of MpiCommunicator's other calls.
class MpiReduction {
 public:
  // `part` undefined: the sum of `all` is put there on all ranks. All ranks of `comm` make the same
  // ones in the same order, one at a time.
  MpiReduction(MPI_Comm comm, Tensor all, Tensor part, ReduceOp op);

  // Goes on as far as it can, or to the end where told to wait. Whether it is done.
  bool advance(bool wait);

  // Its messages are left to themselves, for the end of a process whose other ranks may never come:
  // what they lie in stays where it is.
  static void abandon(MpiReduction reduction);

 private:
  enum class Stage : std::uint8_t { kSharesTravel, kSumsTravel, kDone };
  // Of rank r's share of the piece, in elements of all_.
  struct Share {
    std::int64_t first = 0, count = 0;
  };

  Share share(int rank) const;
  std::byte* at(std::int64_t element) const;
  void exchange_shares();
  void add_up();
  void exchange_sums();
  void next_piece();
  void send(const Share& share, int to);
  void receive(std::byte* into, std::int64_t count, int from);

  MPI_Comm comm_;
  Tensor all_, part_;
  ReduceOp op_;
  int rank_ = 0, size_ = 1;
  std::int64_t step_ = 0;   // elements of a piece: of all_, or of a rank's part
  std::int64_t first_ = 0;  // of the piece
  Stage stage_ = Stage::kDone;
  std::vector<MPI_Request> requests_;
  std::vector<std::byte> arrived_;  // others' values of this rank's share, by rank
};

}  // namespace tpsim
