// Signals of processes that train: a stop after the current step, and a supervised child process.
#pragma once

#include <functional>
#include <string>

namespace tpsim {

// Makes SIGINT and SIGTERM request a stop. A second signal within a second is ignored, because
// terminals, timeout(1) and batch systems send signals several times. A later one ends the process
// at once.
void catch_stop_signals();
// Returns the first signal that requested a stop; 0 if there was none.
int stop_signal();

// Runs `work` in a child process and returns the child's exit code. If a signal kills the child, as
// when memory runs out, reports that on stderr with `name` and `remedy`, and returns 128 + signal
// number.
//
// SIGINT and SIGTERM are forwarded to the child and not reported. If this process dies, the child
// is killed.
int supervised(const std::string& name, const std::string& remedy,
               const std::function<int()>& work);

}  // namespace tpsim
