// Adapters of experts: the four GEMMs of every local expert's adapter run as batched GEMMs.
#include <algorithm>

#include "reference_model/layers/adapters.h"
#include "reference_model/layers/experts.h"
#include "reference_model/layers/norm.h"
#include "reference_model/parallel/weight_gradients.h"

namespace tpsim {
namespace {

constexpr Label kExpertAdapter{ModelPart::kExperts, kExpertAdapters};

// Returns one matrix for each expert.
Matrix each_expert(const Tensor& flat, const Parameter& first, std::int64_t stride) {
  const Shape& shape = first.spec.shape;
  return {.tensor = flat,
          .rows = shape[0],
          .cols = shape[1],
          .row_stride = shape[1],
          .offset = first.offset,
          .outer_stride = stride};
}

Matrix turned(Matrix matrix) {
  matrix.transposed = true;
  return matrix;
}

}  // namespace

void Experts::add_adapter(const std::string& block, const std::string& matrix, std::int64_t column,
                          std::vector<StackedAdapter>& adapters) {
  const WeightNames names = names_of(context_.model);
  const auto linear = [&](std::int64_t expert) {
    return block + expert_name(names, first_expert(context_) + expert, matrix);
  };
  const auto find = [&](const std::string& name) { return find_parameter(unit_, name); };
  StackedAdapter one{.down = find(adapter_down_name(linear(0))),
                     .up = find(adapter_up_name(linear(0))),
                     .column = column};
  if (one.down == nullptr) return;
  if (sizes_.experts > 1) {
    one.down_stride = find(adapter_down_name(linear(1)))->offset - one.down->offset;
    one.up_stride = find(adapter_up_name(linear(1)))->offset - one.up->offset;
  }
  adapters.push_back(one);
}

void Experts::adapter_forward(const StackedAdapter& adapter, const Tensor& x, const Tensor& y,
                              ExpertsSaved& saved) const {
  const Tensor& weights = unit_.trained_part()->weights;
  const std::int64_t rank = adapter.down->spec.shape[0], out = adapter.up->spec.shape[0];
  const Tensor reduced = allocate_activation(context_, {x.shape()[0], x.shape()[1], rank},
                                             kExpertAdapters, AllocationRole::kExpertTokens);
  context_.device.run(Matmul{.a = columns_of(x, 0, adapter.down->spec.shape[1]),
                             .b = turned(each_expert(weights, *adapter.down, adapter.down_stride)),
                             .c = columns_of(reduced, 0, rank),
                             .outer = sizes_.experts,
                             .alpha = static_cast<float>(context_.options.finetune.scale()),
                             .label = kExpertAdapter});
  context_.device.run(Matmul{.a = columns_of(reduced, 0, rank),
                             .b = turned(each_expert(weights, *adapter.up, adapter.up_stride)),
                             .c = columns_of(y, adapter.column, out),
                             .outer = sizes_.experts,
                             .beta = 1.0F,
                             .label = kExpertAdapter});
  saved.reduced.push_back(reduced);
}

void Experts::begin_adapter_gradients(ExpertsSaved& saved) const {
  if (unit_.trained_part() == nullptr) return;
  for (Parameter& p : unit_.trained_part()->parameters()) {
    if (p.spec.is_adapter())
      saved.adapter_beta = std::min(saved.adapter_beta, accumulation_beta(p));
  }
}

void Experts::adapter_backward(const StackedAdapter& adapter, const Tensor& dy, const Tensor& x,
                               const Tensor& dx, ExpertsSaved& saved) const {
  const Tensor reduced = std::move(saved.reduced.back());
  saved.reduced.pop_back();
  const ParameterUnit& unit = *unit_.trained_part();
  const std::int64_t rank = adapter.down->spec.shape[0], in = adapter.down->spec.shape[1];
  const Matrix slopes = columns_of(dy, adapter.column, adapter.up->spec.shape[0]);
  const Tensor slope = allocate_activation(context_, reduced.shape(), kExpertAdapters,
                                           AllocationRole::kExpertTokens);
  context_.device.run(Matmul{.a = slopes,
                             .b = each_expert(unit.weights, *adapter.up, adapter.up_stride),
                             .c = columns_of(slope, 0, rank),
                             .outer = sizes_.experts,
                             .alpha = static_cast<float>(context_.options.finetune.scale()),
                             .label = kExpertAdapter});
  context_.device.run(Matmul{.a = columns_of(slope, 0, rank),
                             .b = each_expert(unit.weights, *adapter.down, adapter.down_stride),
                             .c = columns_of(dx, 0, in),
                             .outer = sizes_.experts,
                             .beta = 1.0F,
                             .label = kExpertAdapter});
  const auto weight_gradient = [&](const Matrix& slopes_of, const Matrix& inputs,
                                   const Parameter& of, std::int64_t stride) {
    const Matmul product{.a = turned(slopes_of),
                         .b = inputs,
                         .c = each_expert(unit.gradient_buffer, of, stride),
                         .outer = sizes_.experts,
                         .beta = saved.adapter_beta,
                         .label = kExpertAdapter};
    run_weight_gradient(context_, [this, product] { context_.device.run(product); });
  };
  weight_gradient(slopes, columns_of(reduced, 0, rank), *adapter.up, adapter.up_stride);
  weight_gradient(columns_of(slope, 0, rank), columns_of(x, 0, in), *adapter.down,
                  adapter.down_stride);
}

}  // namespace tpsim
