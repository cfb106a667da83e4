#include "ranks/mpi/mpi_reduction.h"

#include <algorithm>
#include <utility>

#include "ranks/mpi/mpi_values.h"
#include "ranks/reduce.h"

namespace tpsim {
namespace {

constexpr int kReductionTag = 1;

}  // namespace

MpiReduction::MpiReduction(MPI_Comm comm, Tensor all, Tensor part, ReduceOp op)
    : comm_(comm), all_(std::move(all)), part_(std::move(part)), op_(op) {
  rank_ = rank_in(comm_);
  size_ = size_of_group(comm_);
  step_ = part_.defined() ? std::max<std::int64_t>(1, kPieceElements / size_) : kPieceElements;
  if (all_.elements() > 0) exchange_shares();
}

MpiReduction::Share MpiReduction::share(int rank) const {
  if (part_.defined()) {
    return {rank * part_.elements() + first_, std::min(step_, part_.elements() - first_)};
  }
  const std::int64_t piece = std::min(step_, all_.elements() - first_);
  const std::int64_t begin = piece * rank / size_;
  return {first_ + begin, piece * (rank + 1) / size_ - begin};
}

std::byte* MpiReduction::at(std::int64_t element) const {
  return static_cast<std::byte*>(all_.raw()) + element * size_of(all_.dtype());
}

void MpiReduction::send(const Share& share, int to) {
  MPI_Isend(at(share.first), static_cast<int>(share.count), mpi_type(all_.dtype()), to,
            kReductionTag, comm_, &requests_.emplace_back());
}

void MpiReduction::receive(std::byte* into, std::int64_t count, int from) {
  MPI_Irecv(into, static_cast<int>(count), mpi_type(all_.dtype()), from, kReductionTag, comm_,
            &requests_.emplace_back());
}

void MpiReduction::exchange_shares() {
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

void MpiReduction::add_up() {
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

void MpiReduction::exchange_sums() {
  stage_ = Stage::kSumsTravel;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    const Share theirs = share(other);
    receive(at(theirs.first), theirs.count, other);
    send(share(rank_), other);
  }
}

void MpiReduction::next_piece() {
  first_ += step_;
  if (first_ < (part_.defined() ? part_ : all_).elements()) {
    exchange_shares();
  } else {
    stage_ = Stage::kDone;
  }
}

bool MpiReduction::advance(bool wait) {
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

void MpiReduction::abandon(MpiReduction reduction) {
  static auto* const abandoned = new std::vector<MpiReduction>();  // never destroyed
  abandoned->push_back(std::move(reduction));
}

}  // namespace tpsim
