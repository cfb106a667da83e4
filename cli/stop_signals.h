// SIGINT and SIGTERM as a wish to stop after the step that is running.
#pragma once

#include "core/result.h"

namespace tpsim::cli {

// From now on the first such signal is remembered; one that comes more than a second later ends the
// process at once. (Terminals, timeout(1) and batch systems send the first one several times.)
void catch_stop_signals();

// Whether one has arrived.
bool stop_requested();

// For a run that stopped: which signal it was, as an exit code.
ErrorKind stop_kind();

}  // namespace tpsim::cli
