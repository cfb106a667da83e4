// JSON schemas of the requests of `tpsim call`, from the table of options.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/call.h"
#include "core/json/json_value.h"

namespace tpsim::cli {

// Returns the kinds for `tpsim show schema`: "plan-request" for the call "plan".
std::vector<std::string> request_kinds();
// Returns the schema of a request of one of these kinds.
JsonValue request_schema(const std::string& kind);

// Returns the schema of an option's value: a switch is a boolean, words are an enum, and an option
// that takes a list accepts one value or an array.
JsonValue keyword_schema(const CallKeyword& keyword);
// Returns the schema of the input: a path, or a list of paths.
JsonValue path_schema(CallRow::Input input);

}  // namespace tpsim::cli
