#include "reference_model/step/optimizer.h"

#include <algorithm>
#include <cmath>

#include "reference_model/layers/embedding.h"

namespace tpsim {
namespace {

constexpr Label kInitialize{ModelPart::kInitialization, "initialize"};
constexpr Label kGradNorm{ModelPart::kGradNorm, "gradient_norm"};
constexpr Label kReduceTied{ModelPart::kEmbeddingGradients, "tied_embedding.reduce"};
constexpr Label kWiden{ModelPart::kOptimizer, "optimizer.widen"};
constexpr Label kAdamW{ModelPart::kOptimizer, "optimizer.adamw"};
constexpr Label kGradientsDown{ModelPart::kGradientsToHost, "optimizer.gradients_down"};
constexpr Label kHostAdamW{ModelPart::kHostOptimizer, "optimizer.host_adamw"};
constexpr Label kWeightsUp{ModelPart::kWeightsToDevice, "optimizer.weights_up"};
constexpr Label kGatherWeights{ModelPart::kParameterGather, "data.gather_weights"};

// The intersection of a segment with this rank's share, relative to the start of the share.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

ElementRange within_share(const Segment& segment, std::int64_t share_begin,
                          std::int64_t share_size) {
  const std::int64_t begin = std::max(segment.begin, share_begin);
  const std::int64_t end = std::min(segment.end, share_begin + share_size);
  return {begin - share_begin, std::max<std::int64_t>(0, end - begin)};
}

}  // namespace

Optimizer::Optimizer(const RankContext& context, ParameterStore& store, OptimizerSettings settings)
    : context_(context), store_(store), settings_(settings) {}

void Optimizer::materialize() {
  Device& device = context_.device;
  const bool offloaded = is_offloaded();
  const MemoryCategory where = offloaded ? MemoryCategory::kHost : MemoryCategory::kOptimizer;
  for (ParameterUnit& unit : store_.units()) {
    const auto allocate = [&](DType dtype, const char* label) {
      return device.allocate({store_.share_size(unit)}, dtype, where, label);
    };
    OptimizerState state;
    state.master = unit.weight_share;
    state.momentum = allocate(DType::kFloat32, "momentum");
    state.variance = allocate(DType::kFloat32, "variance");
    if (context_.plan.dtype != DType::kFloat32 || offloaded) {
      state.master = allocate(DType::kFloat32, "master_weights");
      if (context_.plan.dtype == DType::kFloat32) {
        device.run(Copy{unit.weight_share, state.master, kInitialize});
      } else {
        device.run(Cast{unit.weight_share, state.master, kInitialize});
      }
    }
    if (offloaded) {
      state.host_gradients = allocate(gradient_share_dtype(), "host_gradients");
      const bool narrow = context_.plan.dtype != DType::kFloat32;
      state.host_weights = narrow ? allocate(context_.plan.dtype, "host_weights") : state.master;
    }
    device.run(Fill{state.momentum, 0.0F, kInitialize});
    device.run(Fill{state.variance, 0.0F, kInitialize});
    states_.push_back(state);
  }
}

DType Optimizer::gradient_share_dtype() const {
  return context_.options.widened_optimizer_gradients ? DType::kFloat32
                                                      : context_.plan.gradient_dtype;
}

void Optimizer::reduce_gradients() {
  for (ParameterUnit& unit : store_.units()) {
    store_.reduce_partials(unit);
    reduce_tied_table(unit);
  }
  for (ParameterUnit& unit : store_.units()) store_.reduce_over_data_parallel(unit);
  store_.finish_reductions();
}

// Sums the tied table's gradient over the first stage (embedding) and the last stage (head).
void Optimizer::reduce_tied_table(ParameterUnit& unit) {
  if (!context_.model.tied_embedding || context_.groups.embedding.size() == 1) return;
  if (!unit.holds_word_embeddings()) return;
  const Tensor& gradients = unit.gradients.defined() ? unit.gradients : unit.gradient_share;
  context_.groups.embedding.all_reduce(gradients, ReduceOp::kSum, kReduceTied);
}

// Whether data-parallel ranks hold different gradients, because of ZeRO shards or of experts with
// their own data groups.
bool Optimizer::shares_differ() const {
  const Plan& plan = context_.plan;
  return (plan.zero > 0 && has_replicas(plan)) || folds_experts(plan);
}

// Whether this rank counts the gradients of a unit in the norm. If several ranks of the sum hold
// the same gradients, only the first one counts them.
bool Optimizer::counts_in_norm(const ParameterUnit& unit) const {
  return !shares_differ() || store_.zero_stage(unit) > 0 || store_.data_group(unit).rank() == 0;
}

double Optimizer::global_norm() {
  Device& device = context_.device;
  Tensor sum = device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, kGradNorm.text);
  device.run(Fill{sum, 0.0F, kGradNorm});
  for (ParameterUnit& unit : store_.units()) {
    for (const Segment& segment : unit.segments()) {
      const ElementRange range =
          within_share(segment, store_.share_begin(unit), store_.share_size(unit));
      if (!segment.counts_in_norm || !counts_in_norm(unit) || range.count == 0) continue;
      device.run(SumSquares{unit.gradient_share.slice(range.begin, range.count), sum, kGradNorm});
    }
  }
  Communicator& group = shares_differ() ? context_.groups.world : context_.groups.model;
  group.all_reduce(sum, ReduceOp::kSum, kGradNorm);
  return std::sqrt(static_cast<double>(download_scalar(device, sum)));
}

double Optimizer::update(std::int64_t step) {
  double norm = 0, scale = 1;
  if (context_.options.clip_gradients) {
    norm = global_norm();
    // Clips like PyTorch: by max_norm / (norm + 1e-6), at most 1.
    if (settings_.clip_norm > 0) scale = std::min(1.0, settings_.clip_norm / (norm + 1e-6));
  }
  const std::vector<Tensor> gradients = optimizer_gradients();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    update_unit(store_.units()[i], states_[i], gradients[i], {step, scale});
  }
  for (ParameterUnit& unit : store_.units()) gather_weights(unit);
  return norm;
}

// Returns this rank's gradient shares, cast to fp32 if widened_optimizer_gradients is set.
std::vector<Tensor> Optimizer::optimizer_gradients() {
  std::vector<Tensor> shares;
  const bool widen = context_.options.widened_optimizer_gradients;
  for (ParameterUnit& unit : store_.units()) {
    Tensor share = unit.gradient_share;
    if (widen && share.dtype() != DType::kFloat32) {
      share = context_.device.allocate(share.shape(), DType::kFloat32, MemoryCategory::kWorkspace,
                                       "fp32_gradients");
      context_.device.run(Cast{unit.gradient_share, share, kWiden});
    }
    shares.push_back(share);
  }
  return shares;
}

void Optimizer::update_unit(ParameterUnit& unit, OptimizerState& state, const Tensor& gradients,
                            const UpdateStep& update) {
  if (!is_offloaded()) {
    update_share(unit, state, {gradients, unit.weight_share, kAdamW}, update);
    return;
  }
  Device& device = context_.device;
  device.run(Copy{gradients, state.host_gradients, kGradientsDown});
  update_share(unit, state, {state.host_gradients, state.host_weights, kHostAdamW}, update);
  device.run(Copy{state.host_weights, unit.weight_share, kWeightsUp});
}

void Optimizer::update_share(ParameterUnit& unit, OptimizerState& state, const UpdateOperands& with,
                             const UpdateStep& update) {
  for (const Segment& segment : unit.segments()) {
    const ElementRange range =
        within_share(segment, store_.share_begin(unit), store_.share_size(unit));
    if (range.count == 0) continue;
    const auto part = [&](const Tensor& x) { return x.slice(range.begin, range.count); };
    context_.device.run(
        AdamW{.master = part(state.master),
              .momentum = part(state.momentum),
              .variance = part(state.variance),
              .gradient = part(with.gradients),
              .weights = part(with.weights),
              .rate = static_cast<float>(settings_.rate),
              .beta1 = static_cast<float>(settings_.beta1),
              .beta2 = static_cast<float>(settings_.beta2),
              .epsilon = static_cast<float>(settings_.epsilon),
              .decay = segment.decay ? static_cast<float>(settings_.weight_decay) : 0,
              .gradient_scale = static_cast<float>(update.scale),
              .step = update.step,
              .label = with.label});
  }
}

void Optimizer::gather_weights(ParameterUnit& unit) {
  const int zero = store_.zero_stage(unit);
  if (zero == 0 || zero == 3) return;
  store_.data_group(unit).all_gather(unit.weight_share, unit.weights, kGatherWeights);
}

}  // namespace tpsim
