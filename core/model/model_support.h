// Model families, and whether tpsim can plan a model and the reference model can train it.
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

// Returns kMissing and names the unsupported part if tpsim cannot plan the model.
Status check_plannable(const ModelSpec& model);
// Returns kMissing and names the unsupported part if tpsim cannot plan the model or the reference
// model cannot train it: for example recurrences, gated attention, a bias in the head.
Status check_trainable(const ModelSpec& model);

// Returns the part that the reference model cannot train ("Mamba-2 layers"); empty if none.
// check_trainable() returns the part as an error.
std::string untrained_part(const ModelSpec& model);

// Returns kMissing and names the first part of the model for which no device has kernels, if any.
Status check_computable(const ModelSpec& model);

// The supported values of model_type, sorted.
std::vector<std::string_view> huggingface_types();
// Returns the part of a known Hugging Face family that tpsim does not model; empty if the family is
// supported or unknown.
std::string_view why_unplanned(std::string_view type);

}  // namespace tpsim
