// LayerNorm or RMSNorm over the hidden dimension.
#pragma once

#include <string>
#include <vector>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct NormSaved {
  Tensor x;           // [.., hidden]
  Tensor mean, rstd;  // per row, fp32; RMSNorm has no mean
};

class Norm {
 public:
  // Adds "<name>.weight" (and "<name>.bias" for LayerNorm) to the list of a unit.
  static void specify(const std::string& name, SpecList& specs);
  Norm(ParameterUnit& unit, const std::string& name);

  Tensor forward(const RankContext& context, const Tensor& x, NormSaved& saved,
                 const char* label) const;
  // The gradient of x, plus `residual` where defined.
  Tensor backward(const RankContext& context, const Tensor& dy, const NormSaved& saved,
                  const Tensor& residual, const char* label) const;

 private:
  Parameter& gain_;
  Parameter* bias_;
};

// The parameter of that name in a unit; null when there is none.
Parameter* find_parameter(ParameterUnit& unit, const std::string& name);
Parameter& get_parameter(ParameterUnit& unit, const std::string& name);

}  // namespace tpsim
