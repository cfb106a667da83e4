// Invariants, checked in every build. A failed check is a bug in tpsim, never a message to the
// user.
#pragma once

#include <stdexcept>
#include <string>

namespace tpsim {

// Thrown by a failed TPSIM_CHECK; main() turns it into exit code 1.
class BugError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

}  // namespace tpsim

#define TPSIM_CHECK(condition, message)                             \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      ::tpsim::fail_check(__FILE__, __LINE__, #condition, message); \
  } while (false)
