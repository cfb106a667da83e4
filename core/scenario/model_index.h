// The catalogue's models for listings: grouped by family, sorted by size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/model_spec.h"
#include "core/scenario/catalogue.h"

namespace tpsim {

struct ModelEntry {
  std::string family, name;
  std::int64_t parameters = 0, active = 0;
  std::int64_t context = 0;  // positions that the model supports
};

// Returns the entry of a model in a listing.
ModelEntry entry_of(const ModelSpec& model, std::string name);
// "235.1 B, 22.2 B active, context 40,960"
std::string size_text(const ModelEntry& entry);

// Error if a file of the catalogue cannot be read.
Result<std::vector<ModelEntry>> model_index(const Catalogue& catalogue);

}  // namespace tpsim
