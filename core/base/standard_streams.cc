#include "core/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace tpsim {

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // open() returns the lowest free descriptor, which is this one. The mode is the opposite of the
    // stream's, so that its reads or writes still fail.
    const int held = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (held > STDERR_FILENO) ::close(held);
  }
}

}  // namespace tpsim
