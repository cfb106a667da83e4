#include "reference_model/layers/adapters.h"

#include <algorithm>

#include "reference_model/parallel/weight_gradients.h"

namespace tpsim {
namespace {

constexpr Label kAdapter{ModelPart::kAdapter, "adapter"};

float scale_of(const RankContext& context) {
  return static_cast<float>(context.options.finetune.scale());
}

float dropout_of(const RankContext& context) {
  return static_cast<float>(context.options.finetune.dropout) / 100.0F;
}

Tensor allocate_rows(const RankContext& context, const Matrix& like, std::int64_t width) {
  const Shape& s = like.tensor.shape();
  return allocate_activation(context, {s[0], s[1], width}, kAdapter.text);
}

// Returns the dropped input.
Matrix drop(const RankContext& context, const Matrix& x, AdapterSaved::Entry& saved) {
  saved.input = allocate_activation(context, x.tensor.shape(), kAdapter.text);
  saved.mask = allocate_mask(context, x.tensor, kAdapter.text);
  context.device.run(DropoutForward{.x = x.tensor,
                                    .bias = {},
                                    .residual = {},
                                    .y = saved.input,
                                    .mask = saved.mask,
                                    .rate = dropout_of(context),
                                    .seed = 0,  // not executed, see check_finetune()
                                    .label = kAdapter});
  return matrix_of(saved.input);
}

}  // namespace

AdapterSaved::Entry& AdapterSaved::of(const Parameter& weight) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.weight == &weight; });
  if (found != entries_.end()) return *found;
  return entries_.emplace_back(
      Entry{.weight = &weight, .reduced = {}, .input = {}, .mask = {}, .slope = {}});
}

bool needs_input(const std::vector<Parameter*>& weights) {
  return std::any_of(weights.begin(), weights.end(),
                     [](const Parameter* weight) { return needs_input(*weight); });
}

void adapter_forward(const RankContext& context, const Matrix& x, const Parameter& weight,
                     const Matrix& y, AdapterSaved& saved) {
  if (!weight.is_adapted()) return;
  AdapterSaved::Entry& entry = saved.of(weight);
  const Matrix input = dropout_of(context) > 0 ? drop(context, x, entry) : x;
  const Tensor& down = weight.adapter_down->weight;
  entry.reduced = allocate_rows(context, x, down.rows());
  context.device.run(Matmul{.a = input,
                            .b = matrix_of(down, true),
                            .c = matrix_of(entry.reduced),
                            .alpha = scale_of(context),
                            .label = kAdapter});
  context.device.run(Matmul{.a = matrix_of(entry.reduced),
                            .b = matrix_of(weight.adapter_up->weight, true),
                            .c = y,
                            .beta = 1.0F,
                            .label = kAdapter});
}

void adapter_input_gradient(const RankContext& context, const Matrix& dy, const Parameter& weight,
                            const Matrix& dx, AdapterSaved& saved) {
  if (!weight.is_adapted()) return;
  AdapterSaved::Entry& entry = saved.of(weight);
  entry.slope = allocate_rows(context, dy, weight.adapter_down->weight.rows());
  context.device.run(Matmul{.a = dy,
                            .b = matrix_of(weight.adapter_up->weight),
                            .c = matrix_of(entry.slope),
                            .alpha = scale_of(context),
                            .label = kAdapter});
  const auto add_input_gradient = [&](const Matrix& into, float beta) {
    context.device.run(Matmul{.a = matrix_of(entry.slope),
                              .b = matrix_of(weight.adapter_down->weight),
                              .c = into,
                              .beta = beta,
                              .label = kAdapter});
  };
  if (!entry.mask.defined()) return add_input_gradient(dx, 1.0F);
  const Tensor dropped = allocate_activation(context, dx.tensor.shape(), kAdapter.text);
  add_input_gradient(matrix_of(dropped), 0.0F);
  context.device.run(DropoutBackward{dropped, entry.mask, dropped, dropout_of(context), kAdapter});
  context.device.run(Add{dropped, dx.tensor, kAdapter});
}

void adapter_weight_gradient(const RankContext& context, const Matrix& dy, const Matrix& x,
                             const Parameter& weight, AdapterSaved& saved) {
  if (!weight.is_adapted()) return;
  AdapterSaved::Entry entry = std::exchange(
      saved.of(weight), {.weight = &weight, .reduced = {}, .input = {}, .mask = {}, .slope = {}});
  const auto gradient_product = [&](Matrix slope, const Matrix& input, Parameter& of) {
    slope.transposed = true;
    const Matmul product{.a = slope,
                         .b = input,
                         .c = matrix_of(of.gradient),
                         .beta = accumulation_beta(of),
                         .label = kAdapter};
    run_weight_gradient(context, [&device = context.device, product] { device.run(product); });
  };
  gradient_product(dy, matrix_of(entry.reduced), *weight.adapter_up);
  const Matrix input = entry.input.defined() ? matrix_of(entry.input) : x;
  gradient_product(matrix_of(entry.slope), input, *weight.adapter_down);
}

}  // namespace tpsim
