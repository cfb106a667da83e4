// Meanings of the keys of tpsim's files: key_meanings.txt.
#pragma once

#include <string_view>

#include "core/json/json_fields.h"

namespace tpsim {

// Returns the key "per_op" for "stack/per_op", or "name" for "model/part.name". Its meaning is a
// line of the table, which meaning_of() returns.
constexpr FieldKey key_at(std::string_view path) {
  return {path.substr(path.find_last_of("/.") + 1), path};
}

// Returns the text for FieldKey::meaning: a line of the table, or `meaning` itself.
std::string_view meaning_of(std::string_view meaning);

}  // namespace tpsim
