// Reduces an op's key so that the slow device computes the op quickly.
#pragma once

#include "core/program/program.h"

namespace tpsim {

// Returns a key of the same kind, dtype and variant, with extents halved until the op is small.
// Keeps the constraints of the op, such as the head dimension and at least as many keys as queries.
// Flash attention gets one key/value head with its query heads.
OpKey reduced_key(const OpKey& key);

}  // namespace tpsim
