// Writes values as a Python pickle of protocol 2, documented in CPython's Lib/pickletools.py.
#pragma once

#include <string>

#include "core/json/json_value.h"

namespace tpsim {

// Returns the pickle of dicts, lists, texts and whole numbers; other values are bugs. Texts that
// occur again are written once.
std::string to_pickle(const JsonValue& value);

}  // namespace tpsim
