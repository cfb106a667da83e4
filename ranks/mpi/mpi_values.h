// How values of tensors look to MPI.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/dtype.h"

namespace tpsim {

// Longer arrays are reduced piece by piece, so that what arrives is added while it is in cache.
inline constexpr std::int64_t kPieceElements = 1 << 20;

// MPI only moves elements, so that their width is all it must know.
inline MPI_Datatype mpi_type(DType dtype) {
  switch (size_of(dtype)) {
    case 4: return MPI_UINT32_T;
    case 2: return MPI_UINT16_T;
    default: return MPI_BYTE;
  }
}

}  // namespace tpsim
