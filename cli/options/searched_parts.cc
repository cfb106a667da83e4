#include <fmt/format.h>

#include <algorithm>

#include "cli/options/inputs.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "core/base/numbers.h"
#include "core/base/text.h"

namespace tpsim::cli {
void adopt_parts(const std::vector<TriedParts>& tried, NamedScenario& named) {
  if (tried.empty()) return;
  named.tried = tried;
  for (const auto& [part, value] : tried.front().parts) named.parts[part] = value;
  named.scenario.stack = with_parts(std::move(named.scenario.stack), named.parts);
}

std::string tried_view(const Terminal& terminal, const NamedScenario& named) {
  if (named.tried.empty()) return "";
  const std::string text = joined_text(named.tried, "; ", [](const TriedParts& one) {
    return fmt::format("{} {}", to_string(one.parts),
                       one.step ? time_text(*one.step) : "has no plan that fits");
  });
  return "  " + terminal.paint("parts        ", Ink::kDim) +
         wrapped(text, terminal.room(15, 85), 15) + "\n";
}

JsonValue parts_json(const PartValues& parts) {
  JsonValue json = json_object();
  for (const auto& [part, value] : parts) {
    json.set(std::string(row_of(part).key), text_of(row_of(part), value));
  }
  return json;
}

void add_tried(JsonValue& report, const NamedScenario& named) {
  if (named.tried.empty()) return;
  report.set("parts_searched", json_array(named.tried, [](const TriedParts& one) {
               JsonValue row = json_object({{"parts", parts_json(one.parts)}});
               if (one.step) row.set("step_s", one.step->value());
               return row;
             }));
}

}  // namespace tpsim::cli
