// Communicators of MPI processes.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ranks/mpi/mpi_values.h"
#include "ranks/mpi/mpi_watch.h"
#include "ranks/mpi/mpi_world.h"
#include "ranks/reduce.h"

namespace tpsim {
namespace {

// Maximum size of an all-reduce, in bytes, in which every rank sends all its data to all ranks.
// This takes one exchange. Larger arrays take two: shares, then sums.
constexpr std::int64_t kSmallBytes = 8192;
constexpr int kTag = 0, kReductionTag = 1;

int count_of(std::int64_t elements) {
  TPSIM_CHECK(elements <= std::numeric_limits<int>::max(), "MPI counts elements in an int");
  return static_cast<int>(elements);
}

std::byte* address(void* data, DType dtype, std::int64_t index) {
  return static_cast<std::byte*>(data) + index * size_of(dtype);
}

// A non-blocking reduction that advances in steps. Every rank sums its share of each piece. In an
// all-reduce it then sends the sum to the other ranks. Sums are accumulated in rank order with one
// rounding, as in MpiCommunicator.
class MpiReduction {
 public:
  // Starts an all-reduce of `all` if `part` is undefined, else a reduce-scatter. All ranks of
  // `comm` must start the same reductions in the same order, one at a time.
  MpiReduction(MPI_Comm comm, Tensor all, Tensor part, ReduceOp op)
      : comm_(comm), all_(std::move(all)), part_(std::move(part)), op_(op) {
    rank_ = rank_in(comm_);
    size_ = size_of_group(comm_);
    step_ = part_.defined() ? std::max<std::int64_t>(1, kPieceElements / size_) : kPieceElements;
    if (all_.elements() > 0) exchange_shares();
  }

  // Advances as far as possible, or to the end if `wait`. Returns whether the reduction is
  // complete.
  bool advance(bool wait) {
    while (stage_ != Stage::kDone) {
      const auto count = static_cast<int>(requests_.size());
      int arrived = 1;
      if (wait) {
        MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE);
      } else {
        MPI_Testall(count, requests_.data(), &arrived, MPI_STATUSES_IGNORE);
      }
      if (arrived == 0) return false;
      requests_.clear();
      switch (stage_) {
        case Stage::kSharesTravel:
          add_up();
          if (part_.defined()) {
            next_piece();
          } else {
            exchange_sums();
          }
          break;
        case Stage::kSumsTravel: next_piece(); break;
        case Stage::kDone: break;
      }
    }
    return true;
  }

  // Keeps an unfinished reduction with its messages and buffers until the process exits, because
  // its peers may never answer.
  static void abandon(MpiReduction reduction) {
    static auto* const abandoned = new std::vector<MpiReduction>();  // never destroyed
    abandoned->push_back(std::move(reduction));
  }

 private:
  enum class Stage : std::uint8_t { kSharesTravel, kSumsTravel, kDone };
  // The elements of `all_` that rank r reduces in the current piece.
  struct Share {
    std::int64_t first = 0, count = 0;
  };

  Share share(int rank) const {
    if (part_.defined()) {
      return {rank * part_.elements() + first_, std::min(step_, part_.elements() - first_)};
    }
    const std::int64_t piece = std::min(step_, all_.elements() - first_);
    const std::int64_t begin = piece * rank / size_;
    return {first_ + begin, piece * (rank + 1) / size_ - begin};
  }

  std::byte* at(std::int64_t element) const {
    return static_cast<std::byte*>(all_.raw()) + element * size_of(all_.dtype());
  }

  void send(const Share& share, int to) {
    MPI_Isend(at(share.first), static_cast<int>(share.count), mpi_type(all_.dtype()), to,
              kReductionTag, comm_, &requests_.emplace_back());
  }

  void receive(std::byte* into, std::int64_t count, int from) {
    MPI_Irecv(into, static_cast<int>(count), mpi_type(all_.dtype()), from, kReductionTag, comm_,
              &requests_.emplace_back());
  }

  void exchange_shares() {
    stage_ = Stage::kSharesTravel;
    const std::int64_t mine = share(rank_).count;
    const std::int64_t bytes = mine * size_of(all_.dtype());
    arrived_.resize(static_cast<std::size_t>(bytes * size_));
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      receive(arrived_.data() + other * bytes, mine, other);
      send(share(other), other);
    }
  }

  void add_up() {
    const Share mine = share(rank_);
    const std::int64_t bytes = mine.count * size_of(all_.dtype());
    std::vector<const void*> sources;
    for (int r = 0; r < size_; ++r) {
      sources.push_back(r == rank_ ? at(mine.first) : arrived_.data() + r * bytes);
    }
    void* const sum = part_.defined()
                          ? static_cast<std::byte*>(part_.raw()) + first_ * size_of(part_.dtype())
                          : at(mine.first);
    reduce({all_.dtype(), op_, 0, mine.count}, sources, {&sum, 1});
  }

  void exchange_sums() {
    stage_ = Stage::kSumsTravel;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const Share theirs = share(other);
      receive(at(theirs.first), theirs.count, other);
      send(share(rank_), other);
    }
  }

  void next_piece() {
    first_ += step_;
    if (first_ < (part_.defined() ? part_ : all_).elements()) {
      exchange_shares();
    } else {
      stage_ = Stage::kDone;
    }
  }

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

// Collectives among MPI processes, over host memory.
//
// Reductions exchange shares with MPI and add them here, in rank order with one rounding. Results
// are therefore bit-equal to those of thread ranks. This is also faster than Open MPI's
// MPI_Allreduce above a few kilobytes, and faster than its MPI_Reduce_scatter_block.
class MpiCommunicator final : public Communicator {
 public:
  // Takes ownership of `comm`, which has the group's members in the group's order.
  MpiCommunicator(Device& device, GroupKind group, MPI_Comm comm)
      : Communicator(device, group, rank_in(comm), size_of_group(comm)), comm_(comm) {}

  // Keeps the buffer of a message that was not received until the process exits. The receiver may
  // have failed, so waiting for it could hang.
  ~MpiCommunicator() override {
    static std::vector<std::vector<std::byte>> abandoned;
    for (Pending& pending : pending_) {
      int done = 0;
      MPI_Test(&pending.request, &done, MPI_STATUS_IGNORE);
      if (done != 0) continue;
      MPI_Request_free(&pending.request);
      abandoned.push_back(std::move(pending.data));
    }
    if (!has_begun()) {
      MPI_Comm_free(&comm_);
    } else if (under_way_) {
      MpiReduction::abandon(std::move(*under_way_));
    }
  }

 protected:
  void do_finish() override {
    const MpiCall call("a reduction overlapped with backward");
    Communicator::do_finish();
  }

  bool do_advance(const Begun& call, bool wait) override {
    if (!under_way_) under_way_.emplace(comm_, call.all, call.part, call.op);
    const bool is_done = under_way_->advance(wait);
    if (is_done) under_way_.reset();
    return is_done;
  }

  void do_all_reduce(const Tensor& x, ReduceOp op) override {
    const MpiCall call("all_reduce");
    if (x.bytes() <= kSmallBytes) return all_reduce_small(x, op);
    for (std::int64_t first = 0; first < x.elements(); first += kPieceElements) {
      const Shares shares = even_shares(std::min(kPieceElements, x.elements() - first));
      std::byte* piece = address(x.raw(), x.dtype(), first);
      std::byte* mine = address(piece, x.dtype(), shares.first[static_cast<std::size_t>(rank())]);
      reduce_own_share(piece, shares, x.dtype(), op, mine);
      MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, piece, shares.count.data(),
                     shares.first.data(), mpi_type(x.dtype()), comm_);
    }
  }

  void do_reduce_scatter(const Tensor& all, const Tensor& part) override {
    const MpiCall call("reduce_scatter");
    count_of(all.elements());  // checks that the count fits in an int
    const std::int64_t piece = std::max<std::int64_t>(1, kPieceElements / size());
    for (std::int64_t first = 0; first < part.elements(); first += piece) {
      const auto count = static_cast<int>(std::min(piece, part.elements() - first));
      Shares shares;
      for (std::int64_t r = 0; r < size(); ++r) {
        shares.first.push_back(static_cast<int>(r * part.elements() + first));
        shares.count.push_back(count);
      }
      reduce_own_share(all.raw(), shares, part.dtype(), ReduceOp::kSum,
                       address(part.raw(), part.dtype(), first));
    }
  }

  void do_all_gather(const Tensor& part, const Tensor& all) override {
    const MpiCall call("all_gather");
    const MPI_Datatype type = mpi_type(all.dtype());
    const int count = count_of(part.elements());
    const bool in_place = part.raw() == address(all.raw(), all.dtype(), rank() * part.elements());
    MPI_Allgather(in_place ? MPI_IN_PLACE : part.raw(), count, type, all.raw(), count, type, comm_);
  }

  void do_all_to_all(const Tensor& from, const Tensor& to) override {
    const MpiCall call("all_to_all");
    const MPI_Datatype type = mpi_type(from.dtype());
    const int count = count_of(from.elements() / size());
    MPI_Alltoall(from.raw(), count, type, to.raw(), count, type, comm_);
  }

  void do_broadcast(const Tensor& x, int root) override {
    const MpiCall call("broadcast");
    MPI_Bcast(x.raw(), count_of(x.elements()), mpi_type(x.dtype()), root, comm_);
  }

  // Sends a copy of the data, because both ranks of an exchange may send before they receive.
  void do_send(const Tensor& x, int to) override {
    std::vector<std::byte> data = unused_buffer();
    const auto* from = static_cast<const std::byte*>(x.raw());
    data.assign(from, from + x.bytes());
    pending_.push_back({MPI_REQUEST_NULL, std::move(data)});
    Pending& message = pending_.back();
    MPI_Isend(message.data.data(), count_of(x.elements()), mpi_type(x.dtype()), to, kTag, comm_,
              &message.request);
  }

  void do_receive(const Tensor& x, int from) override {
    const MpiCall call("receive");
    MPI_Status status;
    MPI_Recv(x.raw(), count_of(x.elements()), mpi_type(x.dtype()), from, kTag, comm_, &status);
    int received = 0;
    MPI_Get_count(&status, mpi_type(x.dtype()), &received);
    TPSIM_CHECK(received == x.elements(), "the message has another size than its receiver expects");
  }

  bool needs_host() const override { return true; }

 private:
  // A message in flight, with its own copy of the data.
  struct Pending {
    MPI_Request request;
    std::vector<std::byte> data;
  };
  // Shares of an array by rank: first element and number of elements.
  struct Shares {
    std::vector<int> first, count;
  };

  std::byte* scratch(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (scratch_.size() < size) scratch_.resize(size);
    return scratch_.data();
  }

  Shares even_shares(std::int64_t elements) const {
    Shares shares;
    for (std::int64_t r = 0; r < size(); ++r) {
      const std::int64_t begin = elements * r / size();
      shares.first.push_back(static_cast<int>(begin));
      shares.count.push_back(static_cast<int>(elements * (r + 1) / size() - begin));
    }
    return shares;
  }

  // Sends share r of `data` to rank r, and writes the sum of the received data, this rank's share
  // of all ranks, to `result`.
  void reduce_own_share(const void* data, const Shares& shares, DType dtype, ReduceOp op,
                        void* result) {
    const int mine = shares.count[static_cast<std::size_t>(rank())];
    std::byte* arrived = scratch(std::int64_t{mine} * size() * size_of(dtype));
    const std::vector<int> counts(static_cast<std::size_t>(size()), mine);
    std::vector<int> places;
    std::vector<const void*> sources;
    for (int r = 0; r < size(); ++r) {
      places.push_back(r * mine);
      sources.push_back(address(arrived, dtype, std::int64_t{r} * mine));
    }
    MPI_Alltoallv(data, shares.count.data(), shares.first.data(), mpi_type(dtype), arrived,
                  counts.data(), places.data(), mpi_type(dtype), comm_);
    reduce({dtype, op, 0, mine}, sources, {&result, 1});
  }

  void all_reduce_small(const Tensor& x, ReduceOp op) {
    const int count = count_of(x.elements());
    std::byte* arrived = scratch(x.bytes() * size());
    MPI_Allgather(x.raw(), count, mpi_type(x.dtype()), arrived, count, mpi_type(x.dtype()), comm_);
    std::vector<const void*> sources;
    for (int r = 0; r < size(); ++r) sources.push_back(arrived + r * x.bytes());
    void* const result = x.raw();
    reduce({x.dtype(), op, 0, x.elements()}, sources, {&result, 1});
  }

  // Returns the buffer of a completed message, or a new one.
  std::vector<std::byte> unused_buffer() {
    for (Pending& pending : pending_) {
      int done = 0;
      MPI_Test(&pending.request, &done, MPI_STATUS_IGNORE);
      if (done == 0) continue;
      std::vector<std::byte> buffer = std::move(pending.data);
      std::swap(pending, pending_.back());
      pending_.pop_back();
      return buffer;
    }
    return {};
  }

  MPI_Comm comm_;
  std::vector<std::byte> scratch_;
  std::vector<Pending> pending_;
  std::optional<MpiReduction> under_way_;
};

class MpiWorld final : public World {
 public:
  MpiWorld() : World(rank_in(MPI_COMM_WORLD), size_of_group(MPI_COMM_WORLD)) {}

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override {
    member_of(*this, group, members);  // checks that this rank is a member
    const std::vector<int> ranks(members.begin(), members.end());
    MPI_Group world_group, some;
    MPI_Comm_group(MPI_COMM_WORLD, &world_group);
    MPI_Group_incl(world_group, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm comm = MPI_COMM_NULL;
    const MpiCall call("forming a group");
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&world_group);
    return std::make_unique<MpiCommunicator>(device, group, comm);
  }
};

}  // namespace

std::unique_ptr<World> mpi_world() { return std::make_unique<MpiWorld>(); }

}  // namespace tpsim
