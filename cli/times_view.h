// Recorded and compared times, as tables and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/op_times.h"
#include "sim/comparison.h"

namespace tpsim::cli {

// {"ops": [{"op", "key", "label", "count", "seconds"}], "collectives": [{"collective", "group",
// "ranks", "bytes", "label", "count", "seconds"}]}: keys for the report of a run.
JsonValue ops_json(const std::vector<OpTime>& ops);
JsonValue collectives_json(const std::vector<CollectiveTime>& collectives);

JsonValue compared_json(const std::vector<ComparedTime>& rows);
constexpr std::size_t kComparedRows = 16;
// At most `most` rows and how many more there are.
std::string compared_table(const Terminal& terminal, const std::string& title,
                           const std::vector<ComparedTime>& rows, std::size_t most = kComparedRows);

// "+4.2 %"
std::string error_text(double share);

}  // namespace tpsim::cli
