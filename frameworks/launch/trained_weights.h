// Weights that a configuration trains or freezes by patterns of their names.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/model_spec.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Names of tensors, such as "model.layers.3.mlp.up_proj.weight" of transformers or
// "blocks.3.feed_forward.w3.weight" of OLMo-core.
struct NamedWeights {
  std::string_view key;  // the setting, for errors
  std::function<bool(std::string_view)> match;
  bool are_frozen = false;   // false: the named tensors are trained, and others are frozen
  bool are_of_olmo = false;  // false: names of transformers
};

// Sets the trained weights of the model, and the method of fine-tuning unless all weights are
// trained. Error if no weight is trained, or only some experts of a layer.
Status train_named_weights(ModelSpec& model, PartValues& parts, const NamedWeights& named);

}  // namespace tpsim
