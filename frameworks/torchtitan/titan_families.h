// Recognizes models of published families in torchtitan's registry.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/model/model_spec.h"
#include "formats/settings_text.h"
#include "frameworks/launch/imported_plan.h"

namespace tpsim {

// Values of a configuration by dotted name, such as "model_spec.model.dim".
using TitanValues = std::map<std::string, std::string, std::less<>>;

// Returns the model that the configuration's modules describe. Nothing if the family is unknown, or
// if the sizes are invalid for the family.
std::optional<ModelSpec> titan_family_model(const TitanValues& values);

// Returns the catalogue's model for the flavor that the settings state. Nothing if the catalogue
// does not have it.
std::optional<ModelSpec> titan_flavour(const std::vector<FlatSetting>& settings,
                                       const ImportInputs& inputs);

}  // namespace tpsim
