#include "reference_model/layers/recurrence.h"

#include "reference_model/layers/linear.h"
#include "reference_model/layers/norm.h"
#include "reference_model/parallel/mappings.h"

namespace tpsim {
namespace {

constexpr Label kRecurrentInput{ModelPart::kRecurrentLinear, "recurrence.input"};
constexpr Label kRecurrentOutput{ModelPart::kRecurrentLinear, "recurrence.output"};
constexpr Label kConvolved{ModelPart::kRecurrence, "recurrence.convolution"};
constexpr Label kTurned{ModelPart::kRecurrence, "recurrence.turn"};
constexpr Label kScanned{ModelPart::kRecurrence, "recurrence.scan"};
constexpr Label kGated{ModelPart::kRecurrence, "recurrence.gate"};

// Checkpoint name of a tensor, and its number of rows over all ranks.
struct NamedRows {
  std::string name;
  std::int64_t rows = 0;
};

std::vector<NamedRows> recurrent_matrices(const ModelSpec& model) {
  if (model.mixer == MixerKind::kMamba2) return {{"in_proj.weight", recurrent_inputs(model)}};
  const std::int64_t rates = recurrent_rates(model);
  return {{"in_proj_qkvz.weight", recurrent_inputs(model) - rates}, {"in_proj_ba.weight", rates}};
}

std::string recurrence_prefix(const ModelSpec& model, const std::string& block) {
  return block + (model.mixer == MixerKind::kMamba2 ? "mixer." : "linear_attn.");
}

// Returns the vectors of the mixer, and the weights of the convolution. The norm of a delta net has
// the width of one head and is shared by all heads.
std::vector<NamedRows> recurrent_vectors(const ModelSpec& model) {
  const RecurrentShape& r = model.recurrent;
  std::vector<NamedRows> all = {{"conv1d.weight", recurrent_channels(r)}};
  if (r.convolution_bias) all.push_back({"conv1d.bias", recurrent_channels(r)});
  all.push_back({"dt_bias", r.channel_decay ? r.heads * r.key_dim : r.heads});
  all.push_back({"A_log", r.heads});
  const bool is_mamba = model.mixer == MixerKind::kMamba2;
  if (is_mamba) all.push_back({"D", r.heads});
  all.push_back({"norm.weight", is_mamba ? recurrent_values(r) : r.value_dim});
  return all;
}

}  // namespace

void Recurrence::specify(SpecList& specs) {
  const ModelSpec& model = specs.model();
  const std::string prefix = recurrence_prefix(model, "");
  for (const auto& [name, rows] : recurrent_matrices(model)) {
    specs.matrix(prefix + name, rows, model.hidden, Sharding::kRows);
  }
  for (const auto& [name, rows] : recurrent_vectors(model)) {
    const bool is_shared = name == "norm.weight" && model.mixer == MixerKind::kDeltaNet;
    if (name == "conv1d.weight") {
      specs.matrix(prefix + name, rows, model.recurrent.convolution, Sharding::kRows)
          .is_multiplied = false;
    } else {
      specs.vector(prefix + name, rows, InitialValue::kOnes,
                   is_shared ? Sharding::kPartial : Sharding::kRows);
    }
  }
  specs.matrix(prefix + "out_proj.weight", model.hidden, recurrent_values(model.recurrent),
               Sharding::kColumns);
}

Recurrence::Recurrence(const RankContext& context, ParameterUnit& unit, const std::string& block)
    : context_(context),
      values_(recurrent_values(context.model.recurrent) / context.plan.degrees.tp),
      channels_(recurrent_channels(context.model.recurrent) / context.plan.degrees.tp),
      output_(get_parameter(unit, recurrence_prefix(context.model, block) + "out_proj.weight")) {
  const std::string prefix = recurrence_prefix(context.model, block);
  for (const NamedRows& input : recurrent_matrices(context.model)) {
    inputs_.push_back(&get_parameter(unit, prefix + input.name));
  }
  for (const NamedRows& small : recurrent_vectors(context.model)) {
    small_.push_back(&get_parameter(unit, prefix + small.name));
  }
}

ScanShape Recurrence::scan_shape(std::int64_t tokens) const {
  const RecurrentShape& r = context_.model.recurrent;
  const std::int64_t tp = context_.plan.degrees.tp;
  return {.kind = context_.model.mixer,
          .tokens = tokens,
          .heads = r.heads / tp,
          .key_heads = r.key_heads / tp,
          .key_dim = r.key_dim,
          .value_dim = r.value_dim,
          .chunk = r.chunk,
          .decays = r.channel_decay ? r.key_dim : 0};
}

Tensor Recurrence::allocate_like(const Tensor& rows, std::int64_t width, const char* label) const {
  return allocate_activation(context_, {rows.shape()[0], rows.shape()[1], width}, label);
}

Tensor Recurrence::turned(Tensor rows) const {
  if (context_.plan.micro_batch == 1) return rows;
  Tensor copy = allocate_activation(context_, rows.shape(), kTurned.text);
  context_.device.run(Copy{rows, copy, kTurned});
  return copy;
}

Tensor Recurrence::convolve(const Tensor& projected) const {
  Tensor convolved = allocate_like(projected, channels_, kConvolved.text);
  context_.device.note(convolution_record(OpKind::kConvolutionForward, projected.rows(), channels_,
                                          context_.model.recurrent.convolution, context_.plan.dtype,
                                          kConvolved));
  return convolved;
}

// Allocates the states of all chunks twice: the states themselves, and the states (or state
// gradients) that each chunk starts from.
void Recurrence::scan(OpKind kind, const Tensor& rows) const {
  const ScanShape shape = scan_shape(rows.rows());
  const Tensor states = context_.device.allocate({state_elements(shape)}, DType::kFloat32,
                                                 MemoryCategory::kActivations, kScanned.text);
  const Tensor others = allocate_activation(context_, {state_elements(shape)}, kScanned.text);
  context_.device.note(scan_record(kind, shape, context_.plan.dtype, kScanned));
}

Tensor Recurrence::forward(const Tensor& x, RecurrenceSaved& saved) const {
  const Tensor inside =
      enter_tensor_parallel(context_, x, {ModelPart::kTensorParallel, "recurrence.gather"});
  saved.x = kept_input(context_, x, inside);
  std::int64_t width = 0;
  for (const Parameter* input : inputs_) width += input->spec.shape[0];
  saved.projected = allocate_like(inside, width, kRecurrentInput.text);
  side_by_side_forward(context_, inside, inputs_, saved.adapters, saved.projected, kRecurrentInput);
  saved.projected = turned(std::move(saved.projected));
  Tensor convolved = convolve(saved.projected);
  saved.scanned = allocate_like(inside, values_, kScanned.text);
  scan(OpKind::kScanForward, inside);
  if (!is_mamba()) {
    const ScanShape shape = scan_shape(inside.rows());
    saved.convolved = std::move(convolved);
    saved.systems = allocate_like(inside, shape.heads * shape.chunk, kScanned.text);
  }
  convolved = Tensor();
  saved.gated = allocate_like(inside, values_, kGated.text);
  context_.device.note(
      gate_record(OpKind::kGateForward, inside.rows(), values_, true, context_.plan.dtype, kGated));
  saved.gated = turned(std::move(saved.gated));
  return linear_forward(context_, saved.gated, output_, saved.adapters, kRecurrentOutput);
}

// Returns the gradient of the input projection's output. Frees the tensors saved between the
// projections.
Tensor Recurrence::mixer_backward(const Tensor& dgated, RecurrenceSaved& saved) const {
  for (Parameter* parameter : small_) zero_if_fresh(context_.device, *parameter);
  const Tensor dscanned = allocate_like(dgated, values_, kGated.text);
  Tensor dprojected = allocate_activation(context_, saved.projected.shape(), kRecurrentInput.text);
  context_.device.note(gate_record(OpKind::kGateBackward, dgated.rows(), values_, true,
                                   context_.plan.dtype, kGated));
  saved.scanned = Tensor();
  const Tensor convolved = is_mamba() ? convolve(saved.projected) : std::move(saved.convolved);
  const Tensor dconvolved = allocate_like(dgated, channels_, kScanned.text);
  scan(OpKind::kScanBackward, dgated);
  saved.systems = Tensor();
  context_.device.note(convolution_record(OpKind::kConvolutionBackward, dgated.rows(), channels_,
                                          context_.model.recurrent.convolution, context_.plan.dtype,
                                          kConvolved));
  return dprojected;
}

Tensor Recurrence::backward(const Tensor& dy, RecurrenceSaved saved) const {
  Tensor dgated =
      linear_backward(context_, dy, saved.gated, output_, saved.adapters, kRecurrentOutput);
  saved.gated = Tensor();
  dgated = turned(std::move(dgated));
  Tensor dprojected = mixer_backward(dgated, saved);
  dgated = saved.projected = Tensor();
  dprojected = turned(std::move(dprojected));
  const Tensor x = regather_input(context_, saved.x,
                                  {ModelPart::kColumnParallelBackward, "recurrence.regather"});
  return leave_tensor_parallel(
      context_,
      side_by_side_backward(context_, dprojected, x, inputs_, saved.adapters, kRecurrentInput),
      {ModelPart::kColumnParallelBackward, "recurrence.backward"});
}

}  // namespace tpsim
