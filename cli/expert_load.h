// --expert-load where it names a file.
#pragma once

#include <cstdint>
#include <string>

#include "core/model_spec.h"
#include "core/result.h"

namespace tpsim {

// Gives the model the counts of the file, and answers kCountedLoad; `otherwise` is the error of a
// text that is neither a word, a number nor a file.
Result<std::int64_t> load_of_counts(const std::string& path, Error otherwise, ModelSpec& model);

}  // namespace tpsim
