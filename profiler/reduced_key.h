// An op's key made small enough to be computed on the slow device in a moment.
#pragma once

#include "core/program/program.h"

namespace tpsim {

// The same kind, dtype and variant, with extents halved until it is small. What has to stay (even
// head dimensions, the ratio of heads) does.
OpKey reduced_key(const OpKey& key);

}  // namespace tpsim
