#include "reference_model/experts.h"

#include "reference_model/linear.h"
#include "reference_model/norm.h"

namespace tpsim {
namespace {

constexpr Label kRouter{ModelPart::kRouter, "experts.router"};
constexpr Label kRoute{ModelPart::kRouter, "experts.route"};
constexpr Label kUp{ModelPart::kExperts, "experts.up"};
constexpr Label kDown{ModelPart::kExperts, "experts.down"};
constexpr Label kSwiglu{ModelPart::kActivation, "experts.swiglu"};
constexpr Label kGelu{ModelPart::kActivation, "experts.gelu"};
constexpr Label kDispatch{ModelPart::kExperts, "experts.dispatch"};
constexpr Label kCombine{ModelPart::kExperts, "experts.combine"};
constexpr Label kReorder{ModelPart::kExperts, "experts.reorder"};
constexpr Label kGather{ModelPart::kExperts, "experts.gather"};
constexpr Label kReduceSlots{ModelPart::kExperts, "experts.reduce"};

// Names as in Mixtral's checkpoints; of GELU experts by analogy with the dense ones.
std::string router_name(const ModelSpec& model) {
  return model.mlp == MlpKind::kSwiglu ? "block_sparse_moe.gate.weight" : "mlp.router.weight";
}

std::string expert_name(const ModelSpec& model, std::int64_t expert, const char* matrix) {
  const char* experts =
      model.mlp == MlpKind::kSwiglu ? "block_sparse_moe.experts." : "mlp.experts.";
  return experts + std::to_string(expert) + "." + matrix + ".weight";
}

std::vector<const char*> expert_up_names(const ModelSpec& model) {
  if (model.mlp == MlpKind::kSwiglu) return {"w1", "w3"};  // gate and up
  return {"dense_h_to_4h"};
}

const char* expert_down_name(const ModelSpec& model) {
  return model.mlp == MlpKind::kSwiglu ? "w2" : "dense_4h_to_h";
}

std::int64_t first_expert(const RankContext& context) {
  return context.groups.expert.rank() * local_sizes(context).experts;
}

}  // namespace

void Experts::specify_router(const RankContext& context, const std::string& block,
                             std::vector<ParameterSpec>& specs) {
  const ModelSpec& model = context.model;
  specs.push_back({.name = block + router_name(model),
                   .shape = {model.experts.count, model.hidden},
                   .deviation = model.initializer_range,
                   .global_rows = model.experts.count});
}

ParameterUnit& Experts::add_to(const RankContext& context, ParameterStore& store,
                               const std::string& block) {
  const ModelSpec& model = context.model;
  const LocalSizes sizes = local_sizes(context);
  std::vector<ParameterSpec> specs;
  for (std::int64_t i = 0; i < sizes.experts; ++i) {
    const std::int64_t expert = first_expert(context) + i;
    for (const char* name : expert_up_names(model)) {
      specs.push_back({.name = block + expert_name(model, expert, name),
                       .shape = {sizes.ffn, model.hidden},
                       .sharding = Sharding::kRows,
                       .deviation = model.initializer_range,
                       .global_rows = model.ffn_hidden});
    }
    specs.push_back({.name = block + expert_name(model, expert, expert_down_name(model)),
                     .shape = {model.hidden, sizes.ffn},
                     .sharding = Sharding::kColumns,
                     .deviation = model.initializer_range,
                     .global_rows = model.hidden});
  }
  return store.add_unit(std::move(specs), UnitRole::kExperts);
}

Experts::Experts(const RankContext& context, ParameterUnit& block_unit, ParameterUnit& expert_unit,
                 const std::string& block)
    : context_(context),
      sizes_(local_sizes(context)),
      capacity_(expert_capacity(context.model.experts, sizes_.seq_share * sizes_.batch)),
      router_(get_parameter(block_unit, block + router_name(context.model))),
      unit_(expert_unit) {
  const ModelSpec& model = context.model;
  const auto of_expert = [&](std::int64_t i, const char* name) -> const Parameter& {
    return get_parameter(unit_, block + expert_name(model, first_expert(context) + i, name));
  };
  for (const char* name : expert_up_names(model)) {
    const Parameter& p = of_expert(0, name);
    const bool joins =
        !up_.empty() && up_.back().offset + up_.back().rows * model.hidden == p.offset;
    if (joins) {
      up_.back().rows += sizes_.ffn;
    } else {
      up_.push_back({p.offset, sizes_.ffn, model.hidden});
    }
  }
  down_ = {of_expert(0, expert_down_name(model)).offset, model.hidden, sizes_.ffn};
  if (sizes_.experts > 1) {
    const char* first = expert_up_names(model).front();
    stride_ = of_expert(1, first).offset - of_expert(0, first).offset;
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

void Experts::multiply(Matmul product) const {
  product.outer = sizes_.experts;
  context_.device.run(product);
}

Tensor Experts::forward(const Tensor& x, ExpertsSaved& saved) const {
  saved.x = x;
  route(saved);
  const std::int64_t hidden = context_.model.hidden;
  Tensor slots = allocate_activation(context_, {context_.model.experts.count, capacity_, hidden},
                                     kDispatch.text);
  const std::int64_t per_token = context_.model.experts.per_token;
  context_.device.run(DispatchTokens{x, Tensor(), saved.choices, slots, per_token, kDispatch});
  saved.input = to_experts(std::move(slots));

  const std::int64_t count = saved.input.shape()[1];
  const std::int64_t width = (gated() ? 2 : 1) * sizes_.ffn;
  saved.up = allocate_activation(context_, {sizes_.experts, count, width}, kUp.text);
  std::int64_t column = 0;
  for (const Stack& part : up_) {
    Matrix weights = stacked(unit_.weights, part);
    weights.transposed = true;
    multiply({.a = columns_of(saved.input, 0, hidden),
              .b = weights,
              .c = columns_of(saved.up, column, part.rows),
              .label = kUp});
    column += part.rows;
  }
  saved.active = activate(saved);
  Tensor down = allocate_activation(context_, saved.input.shape(), kDown.text);
  Matrix weights = stacked(unit_.weights, down_);
  weights.transposed = true;
  multiply({.a = columns_of(saved.active, 0, sizes_.ffn),
            .b = weights,
            .c = columns_of(down, 0, hidden),
            .label = kDown});
  saved.output = from_experts(std::move(down));

  Tensor y = allocate_activation(context_, x.shape(), kCombine.text);
  context_.device.run(CombineTokens{saved.output, saved.weights, saved.slots, y, kCombine});
  return y;
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
  const Shape choices{tokens, experts.per_token};
  saved.weights = allocate(choices, DType::kFloat32);
  saved.chosen = allocate(choices, DType::kInt32);
  saved.slots = allocate(choices, DType::kInt32);
  saved.choices = allocate({experts.count, capacity_}, DType::kInt32);
  device.run(
      RouteForward{saved.logits, saved.weights, saved.chosen, saved.slots, saved.choices, kRoute});
}

Tensor Experts::activate(const ExpertsSaved& saved) const {
  const Shape& s = saved.up.shape();
  Tensor active = allocate_activation(context_, {s[0], s[1], sizes_.ffn}, "experts.active");
  if (gated()) {
    context_.device.run(SwigluForward{saved.up, active, kSwiglu});
  } else {
    context_.device.run(BiasGeluForward{saved.up, Tensor(), active, kGelu});
  }
  return active;
}

Tensor Experts::to_experts(Tensor slots) const {
  const std::int64_t tp = context_.plan.degrees.tp;
  if (context_.plan.degrees.ep > 1) {
    const Tensor sent = std::move(slots);
    slots = allocate_activation(context_, sent.shape(), "experts.arrived");
    context_.groups.expert.all_to_all(sent, slots, {ModelPart::kExperts, "experts.to_experts"});
  }
  if (tp > 1) {
    const Tensor part = std::move(slots);
    const Shape& s = part.shape();
    slots = allocate_activation(context_, {tp * s[0], s[1], s[2]}, kGather.text);
    context_.groups.tensor.all_gather(part, slots, kGather);
  }
  return reordered(slots, true);
}

Tensor Experts::from_experts(Tensor slots) const {
  const std::int64_t tp = context_.plan.degrees.tp;
  slots = reordered(slots, false);
  if (tp > 1) {
    const Tensor whole = std::move(slots);
    const Shape& s = whole.shape();
    slots = allocate_activation(context_, {s[0] / tp, s[1], s[2]}, kReduceSlots.text);
    context_.groups.tensor.reduce_scatter(whole, slots, kReduceSlots);
  }
  if (context_.plan.degrees.ep > 1) {
    const Tensor sent = std::move(slots);
    slots = allocate_activation(context_, sent.shape(), "experts.returned");
    context_.groups.expert.all_to_all(sent, slots, {ModelPart::kExperts, "experts.from_experts"});
  }
  return slots;
}

// What arrives lies as [rank, expert here, slot]; an expert multiplies the slots of all ranks.
Tensor Experts::reordered(const Tensor& slots, bool by_expert) const {
  const std::int64_t hidden = context_.model.hidden;
  const std::int64_t ranks = context_.plan.degrees.tp * context_.plan.degrees.ep;
  const Shape shape = by_expert ? Shape{sizes_.experts, ranks * capacity_, hidden}
                                : Shape{ranks * sizes_.experts, capacity_, hidden};
  if (ranks == 1 || sizes_.experts == 1) return slots.reshaped(shape);
  Tensor ordered = allocate_activation(context_, shape, kReorder.text);
  const std::int64_t part = capacity_ * hidden;
  const auto places = [&](const Tensor& tensor, std::int64_t expert_stride,
                          std::int64_t rank_stride) {
    return Matrix{.tensor = tensor,
                  .rows = capacity_,
                  .cols = hidden,
                  .row_stride = hidden,
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
  const std::int64_t hidden = context_.model.hidden;
  float beta = 0;
  for (Parameter& p : unit_.parameters()) beta = accumulation_beta(p);  // all are fresh, or none
  const auto weight_gradient = [&](Matrix dy, const Matrix& x, const Stack& stack,
                                   const Label& label) {
    dy.transposed = true;
    multiply({.a = dy,
              .b = x,
              .c = stacked(unit_.gradient_buffer, stack),
              .beta = beta,
              .label = label});
  };
  Tensor dactive = allocate_activation(context_, saved.active.shape(), kDown.text);
  multiply({.a = columns_of(ddown, 0, hidden),
            .b = stacked(unit_.weights, down_),
            .c = columns_of(dactive, 0, sizes_.ffn),
            .label = kDown});
  weight_gradient(columns_of(ddown, 0, hidden), columns_of(saved.active, 0, sizes_.ffn), down_,
                  kDown);
  saved.active = ddown = Tensor();
  const Tensor dup = allocate_activation(context_, saved.up.shape(), "experts.dup");
  if (gated()) {
    context_.device.run(SwigluBackward{dactive, saved.up, dup, kSwiglu});
  } else {
    context_.device.run(BiasGeluBackward{dactive, saved.up, Tensor(), dup, kGelu});
  }
  dactive = saved.up = Tensor();

  Tensor dinput = allocate_activation(context_, saved.input.shape(), kUp.text);
  std::int64_t column = 0;
  for (const Stack& part : up_) {
    const Matrix slopes = columns_of(dup, column, part.rows);
    multiply({.a = slopes,
              .b = stacked(unit_.weights, part),
              .c = columns_of(dinput, 0, hidden),
              .beta = column == 0 ? 0.0F : 1.0F,
              .label = kUp});
    weight_gradient(slopes, columns_of(saved.input, 0, hidden), part, kUp);
    column += part.rows;
  }
  return dinput;
}

Tensor Experts::backward(const Tensor& dy, ExpertsSaved saved) const {
  Device& device = context_.device;
  const std::int64_t per_token = context_.model.experts.per_token;
  const Tensor dweights = device.allocate(saved.weights.shape(), DType::kFloat32,
                                          MemoryCategory::kActivations, kCombine.text);
  device.run(RouteWeightGradient{dy, saved.output, saved.slots, dweights, kCombine});
  Tensor slots = allocate_activation(context_, saved.output.shape(), kCombine.text);
  saved.output = Tensor();
  device.run(DispatchTokens{dy, saved.weights, saved.choices, slots, per_token, kCombine});
  Tensor dinput = experts_backward(to_experts(std::move(slots)), saved);
  saved.input = Tensor();
  slots = from_experts(std::move(dinput));
  Tensor dx = allocate_activation(context_, saved.x.shape(), kDispatch.text);
  device.run(CombineTokens{slots, Tensor(), saved.slots, dx, kDispatch});
  slots = Tensor();

  const Tensor dlogits = allocate_activation(context_, saved.logits.shape(), kRoute.text);
  device.run(RouteBackward{saved.logits, saved.weights, saved.chosen, dweights, dlogits, kRoute});
  device.run(Matmul{.a = matrix_of(dlogits),
                    .b = matrix_of(router_.weight),
                    .c = matrix_of(dx),
                    .beta = 1.0F,
                    .label = kRouter});
  linear_weight_gradient(context_, dlogits, saved.x, router_, kRouter);
  return dx;
}

}  // namespace tpsim
