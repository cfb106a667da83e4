#include "cli/expert_load.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/expert_counts.h"
#include "core/stack_parts.h"

namespace tpsim {

Result<std::int64_t> load_of_counts(const std::string& path, Error otherwise, ModelSpec& model) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    otherwise.hint += "; or a file that counts each expert's tokens";
    return otherwise;
  }
  if (!has_experts(model)) {
    otherwise.message = fmt::format("{} has no experts", model.name);
    otherwise.hint = "leave it out";
    return otherwise;
  }
  TPSIM_TRY(model.experts.counts, read_expert_counts(path, model.experts.count));
  TPSIM_TRY_STATUS(validate(model));
  return kCountedLoad;
}

}  // namespace tpsim
