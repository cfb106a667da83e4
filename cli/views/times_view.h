// Times of ops and collectives in a run, measured or compared with the prediction, as tables and as
// JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/terminal.h"
#include "core/json/json_value.h"
#include "core/program/op_times.h"
#include "sim/step/comparison.h"

namespace tpsim::cli {

// Return the JSON of a run's times. An op has the keys "op", "key", "label", "count" and "seconds".
// A collective has "collective", "group", "ranks", "bytes", "label", "count" and "seconds".
JsonValue ops_json(const std::vector<OpTime>& ops);
JsonValue collectives_json(const std::vector<CollectiveTime>& collectives);

JsonValue compared_json(const std::vector<ComparedTime>& rows);
constexpr std::size_t kComparedRows = 16;
// Returns a table of at most `most` rows, and the number of rows left out.
std::string compared_table(const Terminal& terminal, const std::string& title,
                           const std::vector<ComparedTime>& rows, std::size_t most = kComparedRows);

// Returns a relative error as a signed percentage: "+4.2 %".
std::string error_text(double share);

}  // namespace tpsim::cli
