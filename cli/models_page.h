// docs/models.md: what is known of every family of models.
#pragma once

#include <string>

#include "core/result.h"

namespace tpsim {
class Catalogue;
}

namespace tpsim::cli {

// One row for each family of the catalogue and each model_type that is read: how it is read,
// whether it is planned and trained, which launchers carry its models.
Result<std::string> models_page(const Catalogue& catalogue);

}  // namespace tpsim::cli
