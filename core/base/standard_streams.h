// Messages on stderr, and protection of the standard file descriptors.
#pragma once

#include <string_view>

namespace tpsim {

// Writes `text` to stderr and flushes. Ignores errors of a closed or full stderr.
void say(std::string_view text);

// Reserves the numbers of standard streams that were closed by the caller. Otherwise a file opened
// later would get such a number and receive the stream's output. Call at the start of main().
void hold_standard_streams();

}  // namespace tpsim
