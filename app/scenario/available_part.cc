#include "app/scenario/available_part.h"

#include "frameworks/launch/framework.h"
#include "frameworks/launch/held_settings.h"

namespace tpsim::app {

std::optional<std::int64_t> available_value(const StackSpec& stack, const PartWord& one) {
  const PartRow& row = row_of(one.part);
  const std::int64_t value = parse_value(row, one.word).value();
  const Framework* const framework = framework_of(stack.launcher, stack.name);
  const bool is_written =
      framework == nullptr || held(framework->stack(), one.part, value) == Held::kWritten;
  if (!is_written || row.get(stack) == value) return std::nullopt;
  return value;
}

}  // namespace tpsim::app
