// Models of published families in torchtitan's registry.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/model/model_spec.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// The configuration's values by their dotted names: "model_spec.model.dim".
using TitanValues = std::map<std::string, std::string, std::less<>>;

// Returns the model that its modules describe; nothing for other families, or for sizes that no
// model of the family can have.
std::optional<ModelSpec> titan_family_model(const TitanValues& values);

// Returns the catalogue's model of the flavour that torchtitan's settings name, if it has one.
std::optional<ModelSpec> titan_flavour(const std::vector<FlatSetting>& settings,
                                       const ImportInputs& inputs);

}  // namespace tpsim
