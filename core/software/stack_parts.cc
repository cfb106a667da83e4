#include "core/software/stack_parts.h"

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/software/stack_spec.h"

namespace tpsim {
namespace {

std::array<std::string, kStackPartCount> option_names() {
  std::array<std::string, kStackPartCount> names;
  for (std::size_t i = 0; i < part_rows().size(); ++i) {
    TPSIM_CHECK(static_cast<std::size_t>(part_rows()[i].part) == i, "rows stand in their order");
    names[i] = option_of(part_rows()[i]);
  }
  return names;
}

}  // namespace

const PartRow& row_of(StackPart part) { return part_rows()[static_cast<std::size_t>(part)]; }

std::string_view option_of(StackPart part) {
  static const std::array<std::string, kStackPartCount> names = option_names();
  return names[static_cast<std::size_t>(part)];
}

std::vector<StackPart> parts_of(StepTerm term, const StackSpec& stack) {
  std::vector<StackPart> parts;
  for (const PartRow& row : part_rows()) {
    const Finetune& finetune = stack.training.finetune;
    const bool is_of_choice = row.part >= StackPart::kTrainedParts;
    const bool is_idle = !(is_of_choice ? finetune.freezes() : finetune.adapts) &&
                         is_of_adapters(row.part) && row.part != StackPart::kFinetune;
    if (row.terms.contains(term) && !is_idle) parts.push_back(row.part);
  }
  return parts;
}

std::string to_string(const PartValues& parts) {
  return joined_text(parts, ", ", [](const auto& one) {
    const PartRow& row = row_of(one.first);
    return fmt::format("{}={}", row.key, text_of(row, one.second));
  });
}

}  // namespace tpsim
