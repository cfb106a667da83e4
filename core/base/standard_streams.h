// Messages on stderr, and protection of the standard file descriptors.
#pragma once

#include <string_view>

namespace tpsim {

// Writes `text` to stderr and flushes. Ignores errors of a closed or full stderr.
void say(std::string_view text);

// Opens /dev/null for every standard stream that the parent process closed. Otherwise a file opened
// later would get descriptor 0, 1 or 2 and receive the stream's output. Call at the start of
// main().
void hold_standard_streams();

}  // namespace tpsim
