#include "reference_model/layers/latent_attention.h"

#include "reference_model/layers/linear.h"
#include "reference_model/layers/norm.h"
#include "reference_model/parallel/mappings.h"

namespace tpsim {
namespace {

constexpr Label kLatentDown{ModelPart::kAttentionLinear, "attention.latent_down"};
constexpr Label kLatentUp{ModelPart::kLatentUp, "attention.latent_up"};
constexpr Label kLatentNorm{ModelPart::kAttentionNorm, "attention.latent_norm"};
constexpr Label kCopyHeads{ModelPart::kAttentionCore, "attention.latent_heads"};
constexpr float kEpsilon = 1e-6F;  // of the latent norms, in all models

// Returns a view of each row as one head; AttentionDims selects how many of its entries are used.
Heads as_head(const Tensor& x) {
  const std::int64_t width = x.cols();
  return {x, 0, x.shape()[1] * width, width, width};
}

AttentionDims one_head(const Tensor& x, std::int64_t width) {
  return {x.shape()[1], x.shape()[0], 1, 1, width};
}

}  // namespace

void LatentAttention::specify(SpecList& specs) {
  const ModelSpec& model = specs.model();
  const LatentShape& latent = model.attention.latent;
  const std::string self = "self_attn.";
  constexpr std::int64_t kQuery = part_bit(WeightPart::kQuery);
  constexpr std::int64_t kKeyValue = part_bit(WeightPart::kKey) | part_bit(WeightPart::kValue);
  if (latent.q_rank > 0) {
    specs.linear(self + "q_a_proj", {latent.q_rank, model.hidden}, Sharding::kReplicated,
                 has_qkv_bias(model), kQuery);
    specs.linear(self + "q_b_proj", {query_width(model), latent.q_rank}, Sharding::kRows, false,
                 kQuery);
    specs.vector(self + "q_a_layernorm.weight", latent.q_rank, InitialValue::kOnes);
  } else {
    specs.linear(self + "q_proj", {query_width(model), model.hidden}, Sharding::kRows, false,
                 kQuery);
  }
  const std::int64_t down_rows = latent.kv_rank + latent.rope_dim;
  specs.linear(self + "kv_a_proj_with_mqa", {down_rows, model.hidden}, Sharding::kReplicated,
               has_qkv_bias(model), kKeyValue);
  specs.linear(self + "kv_b_proj",
               {model.attention.heads * (latent.nope_dim + latent.value_dim), latent.kv_rank},
               Sharding::kRows, false, kKeyValue);
  specs.vector(self + "kv_a_layernorm.weight", latent.kv_rank, InitialValue::kOnes);
}

LatentAttention::LatentAttention(const RankContext& context, ParameterUnit& unit,
                                 const std::string& block)
    : context_(context),
      shape_(context.model.attention.latent),
      sizes_(local_sizes(context)),
      q_up_(get_parameter(
          unit, block + "self_attn." + (shape_.q_rank > 0 ? "q_b_proj.weight" : "q_proj.weight"))),
      kv_up_(get_parameter(unit, block + "self_attn.kv_b_proj.weight")) {
  const auto find = [&](const std::string& name) {
    return find_parameter(unit, block + "self_attn." + name);
  };
  q_down_ = {find("q_a_proj.weight"), find("q_a_proj.bias"), find("q_a_layernorm.weight")};
  kv_down_ = {find("kv_a_proj_with_mqa.weight"), find("kv_a_proj_with_mqa.bias"),
              find("kv_a_layernorm.weight")};
}

std::int64_t LatentAttention::query_columns() const {
  return sizes_.heads * context_.model.attention.head_dim;
}

Heads LatentAttention::shared_key(const Tensor& kv) const {
  Heads key = as_head(kv);
  key.offset = shape_.kv_rank;
  return key;
}

Tensor LatentAttention::down(const Tensor& x, const Down& by, std::int64_t rank,
                             Tensor& raw) const {
  Tensor latent = linear_forward(context_, x, *by.weight, kLatentDown);
  if (by.bias != nullptr) {
    context_.device.run(BiasResidual{latent, by.bias->weight, Tensor(), latent, kLatentDown});
  }
  raw =
      allocate_activation(context_, {latent.shape()[0], latent.shape()[1], rank}, kLatentNorm.text);
  context_.device.run(HeadNormForward{.kind = NormKind::kRmsNorm,
                                      .dims = one_head(latent, rank),
                                      .x = as_head(latent),
                                      .gain = by.norm->weight,
                                      .raw = raw,
                                      .epsilon = kEpsilon,
                                      .label = kLatentNorm});
  return latent;
}

Tensor LatentAttention::forward(const Tensor& x, LatentSaved& saved,
                                const AttentionCore& core) const {
  const bool has_rank = shape_.q_rank > 0;
  const Label gather{ModelPart::kTensorParallel, "attention.gather"};
  const Tensor q_latent = has_rank ? down(x, q_down_, shape_.q_rank, saved.raw_q) : x;
  const Tensor kv_latent = down(x, kv_down_, shape_.kv_rank, saved.raw_kv);
  const Tensor q_input = enter_tensor_parallel(context_, q_latent, gather);
  const Tensor kv = enter_tensor_parallel(context_, kv_latent, gather);
  saved.q = kept_input(context_, q_latent, q_input);
  saved.kv = kept_input(context_, kv_latent, kv);
  Tensor qkv = allocate_activation(
      context_, {kv.shape()[0], kv.shape()[1], qkv_width(core.layout())}, kLatentUp.text);
  linear_forward(context_, matrix_of(q_input), q_up_, columns_of(qkv, 0, query_columns()),
                 kLatentUp);
  Heads turned = view_of(core.layout(), qkv).q;
  turned.offset += shape_.nope_dim;
  core.rotate(turned, sizes_.heads, false);
  core.rotate(shared_key(kv), 1, false);
  up_keys_and_values(kv, qkv, core);
  return qkv;
}

// Copies the values, and the part of keys without rotary embedding, between kv_b's output and qkv.
void LatentAttention::copy_heads(const Tensor& qkv, const Tensor& up, bool from_up) const {
  const std::int64_t head_dim = context_.model.attention.head_dim;
  const std::int64_t both = shape_.nope_dim + shape_.value_dim;
  const auto heads_in = [&](const Tensor& tensor, std::int64_t offset, std::int64_t width,
                            std::int64_t stride) {
    Matrix heads = columns_of(tensor, offset, width);
    heads.inner_stride = stride;
    return heads;
  };
  const std::int64_t keys = query_columns(), values = 2 * query_columns();
  for (const bool of_values : {false, true}) {
    const std::int64_t width = of_values ? shape_.value_dim : shape_.nope_dim;
    const Matrix in_up = heads_in(up, of_values ? shape_.nope_dim : 0, width, both);
    const Matrix in_qkv =
        heads_in(qkv, of_values ? values : keys, width, of_values ? shape_.value_dim : head_dim);
    context_.device.run(CopyMatrices{.from = from_up ? in_up : in_qkv,
                                     .to = from_up ? in_qkv : in_up,
                                     .inner = sizes_.heads,
                                     .label = kCopyHeads});
  }
}

void LatentAttention::up_keys_and_values(const Tensor& kv, const Tensor& qkv,
                                         const AttentionCore&) const {
  const std::int64_t width = kv_up_.weight.rows();
  const Tensor up =
      allocate_activation(context_, {kv.shape()[0], kv.shape()[1], width}, kLatentUp.text);
  linear_forward(context_, columns_of(kv, 0, shape_.kv_rank), kv_up_, matrix_of(up), kLatentUp);
  copy_heads(qkv, up, true);
  const Matrix shared = columns_of(kv, shape_.kv_rank, shape_.rope_dim);
  Matrix keys = columns_of(qkv, query_columns() + shape_.nope_dim, shape_.rope_dim);
  keys.inner_stride = context_.model.attention.head_dim;
  context_.device.run(
      CopyMatrices{.from = shared, .to = keys, .inner = sizes_.heads, .label = kCopyHeads});
}

Tensor LatentAttention::keys_and_values_backward(const Tensor& kv, const Tensor& dqkv,
                                                 const AttentionCore& core) const {
  Tensor dkv = allocate_activation(context_, kv.shape(), kLatentUp.text);
  AttentionDims dims = one_head(dqkv, shape_.rope_dim);
  dims.heads = dims.kv_heads = sizes_.heads;
  Heads keys = view_of(core.layout(), dqkv).k;
  keys.offset += shape_.nope_dim;
  context_.device.run(HeadSum{dims, keys, shared_key(dkv), kCopyHeads});
  core.rotate(shared_key(dkv), 1, true);
  const Tensor dup = allocate_activation(
      context_, {kv.shape()[0], kv.shape()[1], kv_up_.weight.rows()}, kLatentUp.text);
  copy_heads(dqkv, dup, false);
  linear_input_gradient(context_, matrix_of(dup), kv_up_, columns_of(dkv, 0, shape_.kv_rank), 0,
                        kLatentUp);
  linear_weight_gradient(context_, matrix_of(dup), columns_of(kv, 0, shape_.kv_rank), kv_up_,
                         kLatentUp);
  return dkv;
}

// Returns the gradient of the query projection's input, a partial sum over the tensor group.
Tensor LatentAttention::queries_backward(const Tensor& dqkv, const LatentSaved& saved) const {
  const Tensor input =
      regather_input(context_, saved.q, {ModelPart::kColumnParallelBackward, "attention.regather"});
  Tensor dinput = allocate_activation(context_, input.shape(), kLatentUp.text);
  const Matrix dqueries = columns_of(dqkv, 0, query_columns());
  linear_input_gradient(context_, dqueries, q_up_, matrix_of(dinput), 0, kLatentUp);
  linear_weight_gradient(context_, dqueries, matrix_of(input), q_up_, kLatentUp);
  return dinput;
}

void LatentAttention::down_backward(const Tensor& dlatent, const Tensor& x, const Down& by,
                                    const Tensor& raw, const Tensor& dx, float beta) const {
  context_.device.run(HeadNormBackward{.kind = NormKind::kRmsNorm,
                                       .dims = one_head(dlatent, raw.cols()),
                                       .dx = as_head(dlatent),
                                       .gain = by.norm->weight,
                                       .raw = raw,
                                       .dgain = gradient_of(context_.device, by.norm),
                                       .epsilon = kEpsilon,
                                       .label = kLatentNorm});
  bias_gradient(context_, dlatent, by.bias, kLatentDown.text);
  linear_weight_gradient(context_, matrix_of(dlatent), matrix_of(x), *by.weight, kLatentDown);
  linear_input_gradient(context_, matrix_of(dlatent), *by.weight, matrix_of(dx), beta, kLatentDown);
}

Tensor LatentAttention::backward(const Tensor& dqkv, const Tensor& x, LatentSaved saved,
                                 const AttentionCore& core) const {
  Heads turned = view_of(core.layout(), dqkv).q;
  turned.offset += shape_.nope_dim;
  core.rotate(turned, sizes_.heads, true);
  Tensor dq = queries_backward(dqkv, saved);
  dq = leave_tensor_parallel(context_, std::move(dq),
                             {ModelPart::kColumnParallelBackward, "attention.backward"});
  Tensor dkv = keys_and_values_backward(
      regather_input(context_, saved.kv,
                     {ModelPart::kColumnParallelBackward, "attention.regather"}),
      dqkv, core);
  dkv = leave_tensor_parallel(context_, std::move(dkv),
                              {ModelPart::kColumnParallelBackward, "attention.backward"});
  const bool has_rank = shape_.q_rank > 0;
  Tensor dx = has_rank ? allocate_activation(context_, x.shape(), kLatentDown.text) : dq;
  if (has_rank) down_backward(dq, x, q_down_, saved.raw_q, dx, 0);
  down_backward(dkv, x, kv_down_, saved.raw_kv, dx, 1);
  return dx;
}

}  // namespace tpsim
