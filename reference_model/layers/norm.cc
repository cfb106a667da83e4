#include "reference_model/layers/norm.h"

namespace tpsim {

Parameter* find_parameter(ParameterUnit& unit, const std::string& name) {
  for (Parameter& p : unit.parameters()) {
    if (p.spec.name == name) return &p;
  }
  return unit.trained_part() != nullptr ? find_parameter(*unit.trained_part(), name) : nullptr;
}

Parameter& get_parameter(ParameterUnit& unit, const std::string& name) {
  Parameter* p = find_parameter(unit, name);
  TPSIM_CHECK(p != nullptr, "no parameter " + name);
  return *p;
}

void Norm::specify(const std::string& name, SpecList& specs) {
  const ModelSpec& model = specs.model();
  specs.gain(name + ".weight", model.hidden);
  if (model.norm == NormKind::kLayerNorm && model.norm_bias) {
    specs.vector(name + ".bias", model.hidden, InitialValue::kZeros).parts =
        part_bit(WeightPart::kNorms);
  }
}

Norm::Norm(ParameterUnit& unit, const std::string& name)
    : gain_(get_parameter(unit, name + ".weight")), bias_(find_parameter(unit, name + ".bias")) {}

Tensor Norm::forward(const RankContext& context, const Tensor& x, NormSaved& saved,
                     const char* label) const {
  const NormKind kind = context.model.norm;
  const auto statistic = [&] {
    return context.device.allocate({x.rows()}, DType::kFloat32, MemoryCategory::kActivations,
                                   label);
  };
  saved.x = x;
  if (kind == NormKind::kLayerNorm) saved.mean = statistic();
  saved.rstd = statistic();
  Tensor y = allocate_activation(context, x.shape(), label);
  context.device.run(NormForward{.kind = kind,
                                 .x = x,
                                 .gain = gain_.weight,
                                 .bias = weight_of(bias_),
                                 .y = y,
                                 .mean = saved.mean,
                                 .rstd = saved.rstd,
                                 .epsilon = static_cast<float>(context.model.norm_epsilon),
                                 .offset = context.model.norm_plus_one ? 1.0F : 0.0F,
                                 .label = {ModelPart::kNorm, label}});
  return y;
}

Tensor Norm::backward(const RankContext& context, const Tensor& dy, const NormSaved& saved,
                      const Tensor& residual, const char* label) const {
  const Tensor dgain = gradient_of(context.device, &gain_);
  const Tensor dbias = gradient_of(context.device, bias_);
  Tensor dx = allocate_activation(context, saved.x.shape(), label);
  context.device.run(NormBackward{.kind = context.model.norm,
                                  .dy = dy,
                                  .x = saved.x,
                                  .gain = gain_.weight,
                                  .mean = saved.mean,
                                  .rstd = saved.rstd,
                                  .residual = residual,
                                  .dx = dx,
                                  .dgain = dgain,
                                  .dbias = dbias,
                                  .offset = context.model.norm_plus_one ? 1.0F : 0.0F,
                                  .label = {ModelPart::kNorm, label}});
  return dx;
}

}  // namespace tpsim
