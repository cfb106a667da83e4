// Settings that Trainer, accelerate and axolotl call by different keys, and files that they name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// The first of these keys that the file has. Takes all of them.
std::optional<std::string> any_text(FlatReader& in, std::initializer_list<const char*> keys);
bool any_flag(FlatReader& in, std::initializer_list<const char*> keys);
// -1 where the file has none.
std::int64_t any_integer(FlatReader& in, std::initializer_list<const char*> keys);

}  // namespace tpsim
