// MPI types and sizes of tensor values.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/base/dtype.h"

namespace tpsim {

// Maximum number of elements of a piece. Longer arrays are reduced piece by piece, so that received
// data is added while it is in cache.
inline constexpr std::int64_t kPieceElements = 1 << 20;

inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

inline int size_of_group(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

// Returns an MPI type of the same width. The value type does not matter, because MPI only moves
// elements and never adds them.
inline MPI_Datatype mpi_type(DType dtype) {
  switch (size_of(dtype)) {
    case 4: return MPI_UINT32_T;
    case 2: return MPI_UINT16_T;
    default: return MPI_BYTE;
  }
}

}  // namespace tpsim
