#include "app/reports/times_json.h"

namespace tpsim::app {

JsonValue ops_json(const std::vector<OpTime>& ops) {
  return json_array(ops, [](const OpTime& op) {
    return json_object({{"op", name_of(op.record.key.kind)},
                        {"key", to_string(op.record.key)},
                        {"label", op.record.label.text},
                        {"count", op.count},
                        {"seconds", op.time.value()}});
  });
}

JsonValue collectives_json(const std::vector<CollectiveTime>& collectives) {
  return json_array(collectives, [](const CollectiveTime& call) {
    return json_object({{"collective", name_of(call.record.kind)},
                        {"group", name_of(call.record.group)},
                        {"ranks", call.record.ranks},
                        {"bytes", call.record.bytes},
                        {"label", call.record.label.text},
                        {"count", call.count},
                        {"seconds", call.time.value()}});
  });
}

JsonValue compared_json(const std::vector<ComparedTime>& rows) {
  return json_array(rows, [](const ComparedTime& row) {
    return json_object(
        {{"what", row.what},
         {"count", row.count},
         {"predicted_s", row.predicted.value()},
         {"measured_s", row.measured.value()},
         {"error_pct", row.measured > Seconds() ? JsonValue(100 * row.error()) : JsonValue()}});
  });
}

}  // namespace tpsim::app
