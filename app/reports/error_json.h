// Errors as JSON (docs/json.md).
#pragma once

#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim::app {

// Returns {"kind", "exit_code", "text", "message", "where", "hint"}. `text` is the error as
// commands print it on stderr, made of the three parts after it.
JsonValue error_json(const Error& error);

// "tpsim-error-report/1": the same keys after the version.
JsonValue error_report(const Error& error);

}  // namespace tpsim::app
