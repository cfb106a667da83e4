// Reduces an op's key so that the slow device computes the op quickly.
#pragma once

#include "core/program/program.h"

namespace tpsim {

// Returns a key of the same kind, dtype and variant, with halved extents until the op is small.
// Constraints are kept (even head dimensions, the ratio of heads).
OpKey reduced_key(const OpKey& key);

}  // namespace tpsim
