// Values of parts as options give them.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/values.h"
#include "core/model_spec.h"
#include "core/stack_parts.h"

namespace tpsim::cli {

// --expert-load may also name a file of counts, which the model has from then on: kCountedLoad.
// Errors name the option, or the file with its line.
Result<std::int64_t> part_value(const PartRow& row, std::string_view text, ModelSpec& model);

}  // namespace tpsim::cli
