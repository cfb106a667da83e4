#include "core/scenario/model_index.h"

#include <catch2/catch.hpp>
#include <set>

namespace tpsim {

TEST_CASE("models are listed by family and rising size, with their active parameters") {
  const Catalogue catalogue = Catalogue::open().value();
  const std::vector<ModelEntry> models = model_index(catalogue).value();
  CHECK(models.size() == catalogue.list(CatalogueKind::kModels).size());
  std::set<std::string> left;  // families already listed completely
  for (std::size_t i = 1; i < models.size(); ++i) {
    const ModelEntry &before = models[i - 1], &entry = models[i];
    if (before.family == entry.family) {
      CHECK(before.parameters <= entry.parameters);
    } else {
      CHECK(left.insert(before.family).second);
      CHECK(left.count(entry.family) == 0);
    }
    CHECK(entry.active <= entry.parameters);
    CHECK(entry.context > 0);
  }
  const ModelEntry entry =
      entry_of(catalogue.load_model("qwen3-235b-a22b").value(), "qwen3-235b-a22b");
  CHECK(size_text(entry) == "235.1 B, 22.2 B active, context 40,960");
}

}  // namespace tpsim
