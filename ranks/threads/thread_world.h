// Ranks as threads of this process, without mpirun.
#pragma once

#include "core/base/result.h"
#include "ranks/world.h"

namespace tpsim {

// Runs `body` on one thread per rank, each with its own World, and waits for all.
//
// If `body` fails on a rank, by an Error or an exception, the collectives of the other ranks throw.
// Returns the first failure. The message starts with the rank's number, except for rank 0.
Status run_on_threads(int size, const RankBody& body);

}  // namespace tpsim
