#include "core/scenario/model_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/numbers.h"
#include "core/model/model_support.h"

namespace tpsim {

ModelEntry entry_of(const ModelSpec& model, std::string name) {
  // Without a stated context, the training sequence is used.
  return {family_of(model), std::move(name), parameter_count(model), active_parameter_count(model),
          model.context > 0 ? model.context : model.seq};
}

std::string size_text(const ModelEntry& entry) {
  std::string text = parameters_text(entry.parameters);
  if (entry.active != entry.parameters) text += ", " + parameters_text(entry.active) + " active";
  return text + fmt::format(", context {}", count_text(entry.context));
}

Result<std::vector<ModelEntry>> model_index(const Catalogue& catalogue) {
  std::vector<ModelEntry> entries;
  for (const std::string& name : catalogue.list(CatalogueKind::kModels)) {
    TPSIM_TRY(const ModelSpec model, catalogue.load_model(name));
    entries.push_back(entry_of(model, name));
  }
  std::sort(entries.begin(), entries.end(), [](const ModelEntry& a, const ModelEntry& b) {
    return std::tie(a.family, a.parameters, a.name) < std::tie(b.family, b.parameters, b.name);
  });
  return entries;
}

}  // namespace tpsim
