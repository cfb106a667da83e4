// Ranks as threads of this process, for a run without mpirun.
#pragma once

#include "core/base/result.h"
#include "ranks/world.h"

namespace tpsim {

// Runs `body` on one thread per rank, each with its own view of the world, and waits for all.
//
// When one fails, by an Error or by an exception, the others are thrown out of their collectives,
// and the first failure is returned, with the rank's number in front where it is not the first
// rank.
Status run_on_threads(int size, const RankBody& body);

}  // namespace tpsim
