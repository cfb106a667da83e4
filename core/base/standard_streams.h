// What is said on stderr, and the descriptors that programs take for granted.
#pragma once

#include <string_view>

namespace tpsim {

// Says `text` on stderr. Where that is closed or full nobody can be told, and nothing else changes.
void say(std::string_view text);

// Standard streams that were closed from outside stay closed, but no file that is opened later gets
// one of their numbers and, with it, what is said there. For the start of main().
void hold_standard_streams();

}  // namespace tpsim
