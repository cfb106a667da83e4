// LayerNorm or RMSNorm over the hidden dimension: Megatron's MixedFusedLayerNorm.
//
// Weights are replicated on every tensor-parallel rank.
#pragma once

#include <string>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct NormSaved {
  Tensor x;           // [.., hidden]
  Tensor mean, rstd;  // per row, fp32; RMSNorm has no mean
};

class Norm {
 public:
  // Adds "<name>.weight", and for LayerNorm with bias "<name>.bias", to the list of a unit.
  static void specify(const std::string& name, SpecList& specs);
  Norm(ParameterUnit& unit, const std::string& name);

  Tensor forward(const RankContext& context, const Tensor& x, NormSaved& saved,
                 const char* label) const;
  // Returns the gradient of x, plus `residual` if defined: the gradient of the residual connection
  // around the norm. Accumulates the gradients of weight and bias.
  Tensor backward(const RankContext& context, const Tensor& dy, const NormSaved& saved,
                  const Tensor& residual, const char* label) const;

 private:
  Parameter& gain_;
  Parameter* bias_;
};

// find_parameter() returns the parameter `name` of a unit, or null if the unit has none.
// get_parameter() fails an internal check instead.
Parameter* find_parameter(ParameterUnit& unit, const std::string& name);
Parameter& get_parameter(ParameterUnit& unit, const std::string& name);

}  // namespace tpsim
