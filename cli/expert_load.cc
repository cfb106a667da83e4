#include "cli/expert_load.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "core/expert_counts.h"

namespace tpsim::cli {

Result<std::int64_t> part_value(const PartRow& row, std::string_view text, ModelSpec& model) {
  Result<std::int64_t> value = parse_value(row, text);
  if (value.ok()) return value;
  std::string hint = value.error().hint;
  if (row.part == StackPart::kExpertLoad) {
    std::error_code ignored;
    if (std::filesystem::exists(std::string(text), ignored)) {
      if (!has_experts(model)) {
        return option_error(opt_of(row.part), fmt::format("{} has no experts", model.name),
                            "leave it out");
      }
      TPSIM_TRY(model.experts.counts, read_expert_counts(std::string(text), model.experts.count));
      TPSIM_TRY_STATUS(validate(model));
      return kCountedLoad;
    }
    hint += "; or a file that counts each expert's tokens";
  }
  return option_error(opt_of(row.part), value.error().message, std::move(hint));
}

}  // namespace tpsim::cli
