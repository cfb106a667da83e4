// The comment of exported files that names their model.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/model_spec.h"
#include "frameworks/launch/imported_plan.h"

namespace tpsim {

// Returns a hash of the model without name, source, sequence, dropout and expert capacity.
std::string shape_hash(ModelSpec model);
// Returns a comment line with the model's name, number of parameters and shape_hash(). Empty if the
// model has no name.
std::string model_line(const ModelSpec& model);
// Whether an exported file has this text: it contains such a comment.
bool names_model(std::string_view text);
using ModelReader = std::function<Result<ImportedPlan>(const ImportInputs&)>;
// Calls `read` with the model that the files name in a comment, if `inputs` has no model and the
// catalogue has this model with the same shape. If that fails, calls `read` without a model.
Result<ImportedPlan> import_with_named_model(const std::vector<LaunchFile>& files,
                                             const ImportInputs& inputs, const ModelReader& read);

}  // namespace tpsim
