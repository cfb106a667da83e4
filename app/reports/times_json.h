// Times of ops and collectives in a run as JSON.
#pragma once

#include <vector>

#include "app/answers/comparison.h"
#include "core/json/json_value.h"
#include "core/program/op_times.h"

namespace tpsim::app {

// An op has the keys "op", "key", "label", "count" and "seconds".
JsonValue ops_json(const std::vector<OpTime>& ops);
// A collective has "collective", "group", "ranks", "bytes", "label", "count" and "seconds".
JsonValue collectives_json(const std::vector<CollectiveTime>& collectives);

// Times that are compared with the prediction.
JsonValue compared_json(const std::vector<ComparedTime>& rows);

}  // namespace tpsim::app
