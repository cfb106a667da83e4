// A parent that waits for the work and says what became of it.
#pragma once

#include <functional>
#include <string>

namespace tpsim::cli {

// Runs `work` in a child process and returns its exit code. A child that dies of a signal, killed
// by hand or for the memory it took, is reported on stderr as `name`: 128 + the signal's number.
// SIGINT and SIGTERM go to the child, which may die of them without a word; when this process dies,
// so does the child.
int supervised(const std::string& name, const std::function<int()>& work);

}  // namespace tpsim::cli
