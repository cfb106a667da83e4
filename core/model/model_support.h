// Families of models, and which models can be planned and trained here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/model_spec.h"

namespace tpsim {

// Returns the family of a catalogue entry: its model_type, or for tpsim's own models the name up to
// the first dash.
std::string family_of(const ModelSpec& model);

// kMissing, with the part of the model that cannot be planned.
Status check_plannable(const ModelSpec& model);
// kMissing, with the part of the model that cannot be planned or trained here: for example
// recurrences, gated attention, a bias in the head.
Status check_trainable(const ModelSpec& model);

// Returns the part that prevents training here ("Mamba-2 layers"); empty if none. check_trainable()
// returns it as an error.
std::string untrained_part(const ModelSpec& model);

// kMissing, with the first part of the model that no device has kernels for.
Status check_computable(const ModelSpec& model);

// The supported values of model_type, sorted.
std::vector<std::string_view> huggingface_types();

}  // namespace tpsim
