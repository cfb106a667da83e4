#include "reference_model/layers/experts.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "reference_model/layers/expert_balance.h"
#include "reference_model/layers/linear.h"
#include "reference_model/layers/mlp.h"
#include "reference_model/layers/norm.h"
#include "reference_model/parallel/weight_gradients.h"

namespace tpsim {
namespace {

constexpr Label kRouter{ModelPart::kRouter, "experts.router"};
constexpr Label kRoute{ModelPart::kRouter, "experts.route"};
constexpr Label kUp{ModelPart::kExperts, "experts.up"};
constexpr Label kDown{ModelPart::kExperts, "experts.down"};
constexpr Label kSwiglu{ModelPart::kExpertActivation, "experts.swiglu"};
constexpr Label kGelu{ModelPart::kExpertActivation, "experts.gelu"};
constexpr Label kDispatch{ModelPart::kPermute, "experts.dispatch"};
constexpr Label kCombine{ModelPart::kPermute, "experts.combine"};
constexpr Label kReorder{ModelPart::kPermute, "experts.reorder"};
constexpr Label kGather{ModelPart::kDispatch, "experts.gather"};
constexpr Label kBias{ModelPart::kExperts, "experts.bias"};
constexpr Label kReduceSlots{ModelPart::kDispatch, "experts.reduce"};
constexpr Label kLatent{ModelPart::kLatentExperts, "experts.latent"};

Tensor allocate_tokens(const RankContext& context, Shape shape, const char* label,
                       AllocationRole role = AllocationRole::kExpertTokens) {
  return allocate_activation(context, shape, label, role);
}

// Returns a view of columns [column, column + count) of one expert's rows in [experts, N, width].
Matrix rows_of_expert(const Tensor& rows, std::size_t expert, std::int64_t column,
                      std::int64_t count) {
  const Shape& s = rows.shape();
  return {.tensor = rows,
          .rows = s[1],
          .cols = count,
          .row_stride = s[2],
          .offset = static_cast<std::int64_t>(expert) * s[1] * s[2] + column};
}

}  // namespace

// Adds each local expert's bias to its rows in [local experts, N, width]. With `first_rank_alone`,
// only the first rank of an expert's tensor group adds the replicated bias, because the results of
// these ranks are summed.
void Experts::add_biases(const Tensor& rows, const Biases& biases, bool first_rank_alone) const {
  if (first_rank_alone && context_.groups.expert_tensor.rank() != 0) return;
  for (std::size_t i = 0; i < biases.of_experts.size(); ++i) {
    const Tensor& bias = biases.of_experts[i]->weight;
    context_.device.run(
        ColumnBias{rows_of_expert(rows, i, biases.column, bias.elements()), bias, kBias});
  }
}

// The gradient is zero on ranks that did not add the bias.
void Experts::bias_gradients(const Tensor& drows, const Biases& biases,
                             bool first_rank_alone) const {
  for (std::size_t i = 0; i < biases.of_experts.size(); ++i) {
    Parameter& bias = *biases.of_experts[i];
    if (!bias.is_trained()) return;
    zero_if_fresh(context_.device, bias);
    if (first_rank_alone && context_.groups.expert_tensor.rank() != 0) continue;
    context_.device.run(ColumnBiasGradient{
        rows_of_expert(drows, i, biases.column, bias.gradient.elements()), bias.gradient, kBias});
  }
}

Matrix Experts::columns_of(const Tensor& x, std::int64_t first, std::int64_t count) {
  const Shape& s = x.shape();
  return {.tensor = x,
          .rows = s[1],
          .cols = count,
          .row_stride = s[2],
          .offset = first,
          .outer_stride = s[1] * s[2]};
}

Matrix Experts::stacked(const Tensor& flat, const Stack& stack) const {
  return {.tensor = flat,
          .rows = stack.rows,
          .cols = stack.cols,
          .row_stride = stack.cols,
          .offset = stack.offset,
          .outer_stride = stride_};
}

void Experts::multiply(Matmul product, const Stack& stack) const {
  product.outer = sizes_.experts;
  context_.device.run(with_recipe(context_, std::move(product), stack.first->scales));
}

Tensor Experts::project(const Tensor& x, const Parameter* by) const {
  return by == nullptr ? x : linear_forward(context_, x, *by, kLatent);
}

Tensor Experts::project_backward(Tensor dy, const Tensor& x, Parameter* by) const {
  if (by == nullptr) return dy;
  linear_weight_gradient(context_, matrix_of(dy), matrix_of(x), *by, kLatent);
  return linear_input_gradient(context_, dy, *by, kLatent);
}

Tensor Experts::forward(const Tensor& x, ExpertsSaved& saved) const {
  saved.x = x;
  route(saved);
  Tensor slots = allocate_activation(
      context_, {context_.model.experts.count, saved.choices.cols(), width_}, kDispatch.text);
  const std::int64_t per_token = context_.model.experts.per_token;
  const bool scales_input = context_.model.experts.router.scales_input;
  context_.device.run(PermuteTokens{project(x, latent_down_),
                                    scales_input ? saved.weights : Tensor(), saved.choices, slots,
                                    per_token, kDispatch});
  saved.input = to_experts(std::move(slots));

  const std::int64_t count = saved.input.shape()[1];
  const std::int64_t width = (gated() ? 2 : 1) * sizes_.ffn;
  saved.up = allocate_tokens(context_, {sizes_.experts, count, width}, kUp.text);
  std::int64_t column = 0;
  for (const Stack& part : up_) {
    Matrix weights = stacked(unit_.weights, part);
    weights.transposed = true;
    multiply({.a = columns_of(saved.input, 0, width_),
              .b = weights,
              .c = columns_of(saved.up, column, part.rows),
              .label = kUp},
             part);
    column += part.rows;
  }
  for (const StackedAdapter& one : up_adapters_) adapter_forward(one, saved.input, saved.up, saved);
  for (const Biases& biases : up_biases_) add_biases(saved.up, biases, false);
  saved.active = allocate_tokens(context_, {sizes_.experts, count, sizes_.ffn}, "experts.active",
                                 AllocationRole::kExpertActivation);
  activate(context_, saved.up, Tensor(), saved.active, gated() ? kSwiglu : kGelu);
  Tensor down = allocate_tokens(context_, saved.input.shape(), kDown.text);
  Matrix weights = stacked(unit_.weights, down_);
  weights.transposed = true;
  multiply({.a = columns_of(saved.active, 0, sizes_.ffn),
            .b = weights,
            .c = columns_of(down, 0, width_),
            .label = kDown},
           down_);
  for (const StackedAdapter& one : down_adapters_) adapter_forward(one, saved.active, down, saved);
  for (const Biases& biases : down_biases_) add_biases(down, biases, true);
  saved.output = from_experts(std::move(down));

  Tensor y = allocate_activation(context_, {x.shape()[0], x.shape()[1], width_}, kCombine.text);
  context_.device.run(UnpermuteTokens{saved.output, scales_input ? Tensor() : saved.weights,
                                      saved.slots, y, kCombine});
  if (latent_up_ != nullptr) saved.combined = y;
  return project(y, latent_up_);
}

void Experts::route(ExpertsSaved& saved) const {
  Device& device = context_.device;
  const ExpertShape& experts = context_.model.experts;
  const std::int64_t tokens = saved.x.rows();
  const auto allocate = [&](Shape shape, DType dtype) {
    return device.allocate(shape, dtype, MemoryCategory::kActivations, kRoute.text);
  };
  saved.logits = allocate({tokens, experts.count}, DType::kFloat32);
  device.run(Matmul{.a = matrix_of(saved.x),
                    .b = matrix_of(router_.weight, true),
                    .c = matrix_of(saved.logits),
                    .label = kRouter});
  if (router_bias_ != nullptr) {
    device.run(ColumnBias{matrix_of(saved.logits), router_bias_->weight, kRouter});
  }
  const Shape choices{tokens, experts.per_token};
  saved.weights = allocate(choices, DType::kFloat32);
  saved.chosen = allocate(choices, DType::kInt32);
  saved.slots = allocate(choices, DType::kInt32);
  const auto choose = [&](std::int64_t capacity) {
    saved.choices = allocate({experts.count, capacity}, DType::kInt32);
    device.run(RouteForward{saved.logits, saved.weights, saved.chosen, saved.slots, saved.choices,
                            experts.router, correction_, kRoute});
  };
  choose(capacity_);
  if (const std::int64_t needed = slots_needed(saved.chosen); needed < capacity_) choose(needed);
}

std::int64_t Experts::slots_needed(const Tensor& chosen) const {
  Device& device = context_.device;
  const ExpertShape& experts = context_.model.experts;
  if (!experts.dropless || !device.computes()) return capacity_;
  const std::vector<float> counts = tokens_by_expert(device, chosen, experts.count);
  const auto most = static_cast<std::int64_t>(*std::max_element(counts.begin(), counts.end()));
  // Rounds up so that few shapes occur: a GPU selects a GEMM algorithm for each shape.
  constexpr std::int64_t kOfMean = 8, kMultiple = 8;
  const std::int64_t mean = chosen.elements() / experts.count;
  const std::int64_t step =
      std::max<std::int64_t>(1, (mean / kOfMean + kMultiple - 1) / kMultiple) * kMultiple;
  const std::int64_t needed = std::min((most + step - 1) / step * step, capacity_);
  return most_over_ranks(needed);
}

std::int64_t Experts::most_over_ranks(std::int64_t count) const {
  constexpr Label kRoom{ModelPart::kCoordination, "experts.room"};
  if (context_.plan.degrees.ep * expert_tensor_ranks(context_.plan) == 1) return count;
  const auto value = static_cast<float>(count);  // below 2^24, exact in fp32
  const Tensor most =
      context_.device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, kRoom.text);
  context_.device.upload(std::as_bytes(std::span(&value, 1)), most);
  context_.groups.expert.all_reduce(most, ReduceOp::kMax, kRoom);
  context_.groups.expert_tensor.all_reduce(most, ReduceOp::kMax, kRoom);
  return static_cast<std::int64_t>(download_scalar(context_.device, most));
}

Tensor Experts::to_experts(Tensor slots) const {
  const std::int64_t etp = expert_tensor_ranks(context_.plan);
  if (context_.plan.degrees.ep > 1) {
    const Tensor sent = std::move(slots);
    slots = allocate_tokens(context_, sent.shape(), "experts.arrived");
    context_.groups.expert.all_to_all(sent, slots, {ModelPart::kDispatch, "experts.to_experts"});
  }
  if (etp > 1) {
    const Tensor part = std::move(slots);
    const Shape& s = part.shape();
    slots = allocate_tokens(context_, {etp * s[0], s[1], s[2]}, kGather.text);
    context_.groups.expert_tensor.all_gather(part, slots, kGather);
  }
  return reordered(slots, true);
}

Tensor Experts::from_experts(Tensor slots) const {
  const std::int64_t etp = expert_tensor_ranks(context_.plan);
  slots = reordered(slots, false);
  if (etp > 1) {
    const Tensor whole = std::move(slots);
    const Shape& s = whole.shape();
    slots = allocate_tokens(context_, {s[0] / etp, s[1], s[2]}, kReduceSlots.text);
    context_.groups.expert_tensor.reduce_scatter(whole, slots, kReduceSlots);
  }
  if (context_.plan.degrees.ep > 1) {
    const Tensor sent = std::move(slots);
    slots = allocate_activation(context_, sent.shape(), "experts.returned");
    context_.groups.expert.all_to_all(sent, slots, {ModelPart::kDispatch, "experts.from_experts"});
  }
  return slots;
}

// Slots arrive as [rank, local expert, slot]. An expert's GEMM needs the slots of all ranks
// adjacent.
Tensor Experts::reordered(const Tensor& slots, bool by_expert) const {
  const std::int64_t ranks = expert_tensor_ranks(context_.plan) * context_.plan.degrees.ep;
  const std::int64_t capacity = by_expert ? slots.shape()[1] : slots.shape()[1] / ranks;
  const Shape shape = by_expert ? Shape{sizes_.experts, ranks * capacity, width_}
                                : Shape{ranks * sizes_.experts, capacity, width_};
  if (ranks == 1 || sizes_.experts == 1) return slots.reshaped(shape);
  Tensor ordered = allocate_tokens(context_, shape, kReorder.text);
  const std::int64_t part = capacity * width_;
  const auto places = [&](const Tensor& tensor, std::int64_t expert_stride,
                          std::int64_t rank_stride) {
    return Matrix{.tensor = tensor,
                  .rows = capacity,
                  .cols = width_,
                  .row_stride = width_,
                  .outer_stride = expert_stride,
                  .inner_stride = rank_stride};
  };
  const Matrix by_rank = places(by_expert ? slots : ordered, part, sizes_.experts * part);
  const Matrix together = places(by_expert ? ordered : slots, ranks * part, part);
  context_.device.run(CopyMatrices{.from = by_expert ? by_rank : together,
                                   .to = by_expert ? together : by_rank,
                                   .outer = sizes_.experts,
                                   .inner = ranks,
                                   .label = kReorder});
  return ordered;
}

Tensor Experts::experts_backward(Tensor ddown, ExpertsSaved& saved) const {
  begin_adapter_gradients(saved);
  for (const Biases& biases : down_biases_) bias_gradients(ddown, biases, true);
  for (const Biases& biases : up_biases_) {
    for (Parameter* bias : biases.of_experts) zero_if_fresh(context_.device, *bias);
  }
  float beta = 1;
  for (Parameter& p : unit_.parameters()) {
    if (unit_.is_frozen()) break;
    beta = std::min(beta, accumulation_beta(p));  // all matrices are fresh, or none is
  }
  const auto weight_gradient = [&](Matrix dy, const Matrix& x, const Stack& stack,
                                   const Label& label) {
    if (unit_.is_frozen()) return;
    dy.transposed = true;
    const Matmul product{
        .a = dy, .b = x, .c = stacked(unit_.gradient_buffer, stack), .beta = beta, .label = label};
    run_weight_gradient(context_, [this, product, &stack] { multiply(product, stack); });
  };
  Tensor dactive = allocate_tokens(context_, saved.active.shape(), kDown.text);
  multiply({.a = columns_of(ddown, 0, width_),
            .b = stacked(unit_.weights, down_),
            .c = columns_of(dactive, 0, sizes_.ffn),
            .label = kDown},
           down_);
  weight_gradient(columns_of(ddown, 0, width_), columns_of(saved.active, 0, sizes_.ffn), down_,
                  kDown);
  for (const StackedAdapter& one : down_adapters_) {
    adapter_backward(one, ddown, saved.active, dactive, saved);
  }
  saved.active = ddown = Tensor();
  const Tensor dup = allocate_tokens(context_, saved.up.shape(), "experts.dup");
  activate_backward(context_, dactive, saved.up, Tensor(), dup, gated() ? kSwiglu : kGelu);
  for (const Biases& biases : up_biases_) bias_gradients(dup, biases, false);
  dactive = saved.up = Tensor();

  Tensor dinput = allocate_tokens(context_, saved.input.shape(), kUp.text);
  std::int64_t column = 0;
  for (const Stack& part : up_) {
    const Matrix slopes = columns_of(dup, column, part.rows);
    multiply({.a = slopes,
              .b = stacked(unit_.weights, part),
              .c = columns_of(dinput, 0, width_),
              .beta = column == 0 ? 0.0F : 1.0F,
              .label = kUp},
             part);
    weight_gradient(slopes, columns_of(saved.input, 0, width_), part, kUp);
    column += part.rows;
  }
  for (auto one = up_adapters_.rbegin(); one != up_adapters_.rend(); ++one) {
    adapter_backward(*one, dup, saved.input, dinput, saved);
  }
  return dinput;
}

void Experts::balance(const ExpertsSaved& saved, const Tensor& dlogits) const {
  const double coefficient = context_.balance.auxiliary_loss;
  if (coefficient > 0) {
    // The training loss is the mean over the micro-batches of all data-parallel ranks.
    const auto parts = static_cast<double>(micro_batches(context_.plan) * context_.plan.degrees.dp);
    add_auxiliary_gradient(context_, saved.logits, saved.chosen, coefficient / parts, dlogits);
  }
  if (context_.loads != nullptr) {
    context_.loads->count(context_.device, layer_, saved.chosen, context_.model.experts.count);
  }
}

Tensor Experts::backward(const Tensor& dz, ExpertsSaved saved) const {
  Device& device = context_.device;
  const std::int64_t per_token = context_.model.experts.per_token;
  const Tensor dweights = device.allocate(saved.weights.shape(), DType::kFloat32,
                                          MemoryCategory::kActivations, kCombine.text);
  const bool scales_input = context_.model.experts.router.scales_input;
  const Tensor dy = project_backward(dz, saved.combined, latent_up_);
  saved.combined = Tensor();
  if (!scales_input) {
    device.run(RouteWeightGradient{dy, saved.output, saved.slots, dweights, kCombine});
  }
  Tensor slots = allocate_activation(context_, saved.output.shape(), kCombine.text);
  saved.output = Tensor();
  device.run(PermuteTokens{dy, scales_input ? Tensor() : saved.weights, saved.choices, slots,
                           per_token, kCombine});
  Tensor dinput = experts_backward(to_experts(std::move(slots)), saved);
  saved.input = Tensor();
  slots = from_experts(std::move(dinput));
  Tensor dx = allocate_activation(context_, dy.shape(), kDispatch.text);
  device.run(
      UnpermuteTokens{slots, scales_input ? saved.weights : Tensor(), saved.slots, dx, kDispatch});
  if (scales_input) {
    device.run(RouteWeightGradient{saved.x, slots, saved.slots, dweights, kDispatch});
  }
  slots = Tensor();
  dx = project_backward(std::move(dx), saved.x, latent_down_);

  const Tensor dlogits = allocate_activation(context_, saved.logits.shape(), kRoute.text);
  device.run(RouteBackward{saved.logits, saved.weights, saved.chosen, dweights, dlogits,
                           context_.model.experts.router, kRoute});
  balance(saved, dlogits);
  if (router_bias_ != nullptr && router_bias_->is_trained()) {
    device.run(ColumnBiasGradient{matrix_of(dlogits), gradient_of(device, router_bias_), kRouter});
  }
  device.run(Matmul{.a = matrix_of(dlogits),
                    .b = matrix_of(router_.weight),
                    .c = matrix_of(dx),
                    .beta = 1.0F,
                    .label = kRouter});
  linear_weight_gradient(context_, matrix_of(dlogits), matrix_of(saved.x), router_, kRouter);
  return dx;
}

}  // namespace tpsim
