// What is known of families of models: their names, and what the reference model does of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/model_spec.h"

namespace tpsim {

// Of which kind of model a catalogue entry is: its model_type, or of models of tpsim's own the
// name before the first dash.
std::string family_of(const ModelSpec& model);

// kMissing, with the part of the model that can be counted but not planned.
Status check_plannable(const ModelSpec& model);
// kMissing, with the part of the model that no device computes (recurrences, gated attention) or
// that plans leave out as too small to matter.
Status check_trainable(const ModelSpec& model);

// What keeps a model from being trained here, in words ("Mamba-2 layers"); empty where nothing
// does. check_trainable() says it as an error.
std::string untrained_part(const ModelSpec& model);

// Whether devices have kernels for all that the model's layers run: kMissing, and for what not.
Status check_computable(const ModelSpec& model);

// The values of model_type that are read, in alphabetical order.
std::vector<std::string_view> huggingface_types();

}  // namespace tpsim
