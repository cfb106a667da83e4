#include "ranks/mpi/mpi_communicator.h"

#include <algorithm>
#include <limits>

#include "ranks/mpi/mpi_values.h"
#include "ranks/mpi/mpi_watch.h"
#include "ranks/reduce.h"

namespace tpsim {
namespace {

// Up to here everyone sends everything: one exchange instead of two.
constexpr std::int64_t kSmallBytes = 8192;
constexpr int kTag = 0;

int count_of(std::int64_t elements) {
  TPSIM_CHECK(elements <= std::numeric_limits<int>::max(), "MPI counts elements in an int");
  return static_cast<int>(elements);
}

std::byte* address(void* data, DType dtype, std::int64_t index) {
  return static_cast<std::byte*>(data) + index * size_of(dtype);
}

}  // namespace

MpiCommunicator::MpiCommunicator(Device& device, GroupKind group, MPI_Comm comm)
    : Communicator(device, group, rank_in(comm), size_of_group(comm)), comm_(comm) {}

// A message that nobody has taken yet keeps its data for as long as the process lives: its receiver
// may have failed, and waiting for it here would hang.
MpiCommunicator::~MpiCommunicator() {
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

void MpiCommunicator::do_finish() {
  const MpiCall call("a reduction beside backward");
  Communicator::do_finish();
}

bool MpiCommunicator::do_advance(const Begun& call, bool wait) {
  if (!under_way_) under_way_.emplace(comm_, call.all, call.part, call.op);
  const bool is_done = under_way_->advance(wait);
  if (is_done) under_way_.reset();
  return is_done;
}

std::byte* MpiCommunicator::scratch(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (scratch_.size() < size) scratch_.resize(size);
  return scratch_.data();
}

MpiCommunicator::Shares MpiCommunicator::even_shares(std::int64_t elements) const {
  Shares shares;
  for (std::int64_t r = 0; r < size(); ++r) {
    const std::int64_t begin = elements * r / size();
    shares.first.push_back(static_cast<int>(begin));
    shares.count.push_back(static_cast<int>(elements * (r + 1) / size() - begin));
  }
  return shares;
}

void MpiCommunicator::reduce_own_share(const void* data, const Shares& shares, DType dtype,
                                       ReduceOp op, void* result) {
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

void MpiCommunicator::all_reduce_small(const Tensor& x, ReduceOp op) {
  const int count = count_of(x.elements());
  std::byte* arrived = scratch(x.bytes() * size());
  MPI_Allgather(x.raw(), count, mpi_type(x.dtype()), arrived, count, mpi_type(x.dtype()), comm_);
  std::vector<const void*> sources;
  for (int r = 0; r < size(); ++r) sources.push_back(arrived + r * x.bytes());
  void* const result = x.raw();
  reduce({x.dtype(), op, 0, x.elements()}, sources, {&result, 1});
}

void MpiCommunicator::do_all_reduce(const Tensor& x, ReduceOp op) {
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

void MpiCommunicator::do_reduce_scatter(const Tensor& all, const Tensor& part) {
  const MpiCall call("reduce_scatter");
  count_of(all.elements());  // checks that MPI can
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

void MpiCommunicator::do_all_gather(const Tensor& part, const Tensor& all) {
  const MpiCall call("all_gather");
  const MPI_Datatype type = mpi_type(all.dtype());
  const int count = count_of(part.elements());
  const bool in_place = part.raw() == address(all.raw(), all.dtype(), rank() * part.elements());
  MPI_Allgather(in_place ? MPI_IN_PLACE : part.raw(), count, type, all.raw(), count, type, comm_);
}

void MpiCommunicator::do_all_to_all(const Tensor& from, const Tensor& to) {
  const MpiCall call("all_to_all");
  const MPI_Datatype type = mpi_type(from.dtype());
  const int count = count_of(from.elements() / size());
  MPI_Alltoall(from.raw(), count, type, to.raw(), count, type, comm_);
}

void MpiCommunicator::do_broadcast(const Tensor& x, int root) {
  const MpiCall call("broadcast");
  MPI_Bcast(x.raw(), count_of(x.elements()), mpi_type(x.dtype()), root, comm_);
}

// The buffer of a message that has left, or a new one.
std::vector<std::byte> MpiCommunicator::unused_buffer() {
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

// Buffered, since both sides of an exchange may send first.
void MpiCommunicator::do_send(const Tensor& x, int to) {
  std::vector<std::byte> data = unused_buffer();
  const auto* from = static_cast<const std::byte*>(x.raw());
  data.assign(from, from + x.bytes());
  pending_.push_back({MPI_REQUEST_NULL, std::move(data)});
  Pending& message = pending_.back();
  MPI_Isend(message.data.data(), count_of(x.elements()), mpi_type(x.dtype()), to, kTag, comm_,
            &message.request);
}

void MpiCommunicator::do_receive(const Tensor& x, int from) {
  const MpiCall call("receive");
  MPI_Status status;
  MPI_Recv(x.raw(), count_of(x.elements()), mpi_type(x.dtype()), from, kTag, comm_, &status);
  int received = 0;
  MPI_Get_count(&status, mpi_type(x.dtype()), &received);
  TPSIM_CHECK(received == x.elements(), "a message has the size its receiver expects");
}

}  // namespace tpsim
