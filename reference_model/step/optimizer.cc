#include "reference_model/step/optimizer.h"

#include <algorithm>
#include <cmath>

#include "reference_model/layers/embedding.h"
#include "reference_model/step/muon.h"

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
  while (states_.size() < store_.units().size()) materialize_unit();
}

void Optimizer::materialize_unit() {
  Device& device = context_.device;
  const ParameterUnit& unit = store_.units()[states_.size()];
  OptimizerState state;
  if (unit.is_frozen()) {
    states_.push_back(std::move(state));
    return;
  }
  state.momentum = allocated(unit, StateTensor::kMomentum);
  state.variance = allocated(unit, StateTensor::kVariance);
  state.master = master_of(unit);
  if (is_offloaded()) {
    const auto on_host = [&](DType dtype, const char* label) {
      return device.allocate({store_.share_size(unit)}, dtype, MemoryCategory::kHost, label);
    };
    const bool narrow = context_.plan.dtype != DType::kFloat32;
    if (store_.is_on_host(unit)) {
      state.host_gradients = unit.gradient_share;
      state.host_weights = unit.weight_share;
    } else {
      state.host_gradients = on_host(gradient_share_dtype(), "host_gradients");
      state.host_weights =
          narrow ? on_host(context_.plan.dtype, "host_weights") : state.master.values;
    }
  }
  for (const StateValues* moments : {&state.momentum, &state.variance}) {
    if (moments->values.defined()) device.run(Fill{moments->values, 0.0F, kInitialize});
  }
  states_.push_back(std::move(state));
}

StateValues Optimizer::allocated(const ParameterUnit& unit, StateTensor tensor) {
  StateValues state{{}, state_pieces(store_, unit, tensor)};
  const MemoryCategory where = is_offloaded() ? MemoryCategory::kHost : MemoryCategory::kOptimizer;
  if (state.pieces.empty()) return state;
  const StatePiece& last = state.pieces.back();
  const AllocationRole role =
      tensor == StateTensor::kMaster ? AllocationRole::kMasterWeights : AllocationRole::kOther;
  state.values = context_.device.allocate({last.at + last.count}, DType::kFloat32, where,
                                          name_of(tensor).data(), role);
  return state;
}

// Returns the fp32 weights that the optimizer updates, with their initial values.
StateValues Optimizer::master_of(const ParameterUnit& unit) {
  const DType dtype = context_.plan.dtype;
  if (dtype == DType::kFloat32 && (!is_offloaded() || store_.is_on_host(unit))) {
    StateValues weights{unit.weight_share, state_pieces(store_, unit, StateTensor::kMaster)};
    for (StatePiece& piece : weights.pieces) piece.at = piece.begin - store_.share_begin(unit);
    return weights;
  }
  StateValues master = allocated(unit, StateTensor::kMaster);
  for (const StatePiece& piece : master.pieces) {
    const Tensor from =
        unit.weight_share.slice(piece.begin - store_.share_begin(unit), piece.count);
    const Tensor to = master.values.slice(piece.at, piece.count);
    if (dtype == DType::kFloat32) {
      context_.device.run(Copy{from, to, kInitialize});
    } else {
      context_.device.run(Cast{from, to, kInitialize});
    }
  }
  return master;
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
  if (!unit.holds_word_embeddings() || unit.is_frozen()) return;
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
    if (unit.is_frozen()) continue;
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
  const UpdateStep update = begin_update(step);
  for (std::size_t i = 0; i < states_.size(); ++i) update_unit(i, update);
  for (ParameterUnit& unit : store_.units()) gather_weights(unit);
  return update.norm;
}

Optimizer::UpdateStep Optimizer::begin_update(std::int64_t step) {
  UpdateStep update{.step = step};
  if (context_.options.clip_gradients) {
    update.norm = global_norm();
    // Clips like PyTorch: by max_norm / (norm + 1e-6), at most 1.
    if (settings_.clip_norm > 0) {
      update.scale = std::min(1.0, settings_.clip_norm / (update.norm + 1e-6));
    }
  }
  update.gradients = optimizer_gradients();
  return update;
}

// Returns this rank's gradient shares, cast to fp32 if widened_optimizer_gradients is set.
std::vector<Tensor> Optimizer::optimizer_gradients() {
  std::vector<Tensor> shares;
  const bool widen = context_.options.widened_optimizer_gradients;
  for (ParameterUnit& unit : store_.units()) {
    Tensor share = unit.gradient_share;
    if (widen && !store_.is_on_host(unit) && share.defined() && share.dtype() != DType::kFloat32 &&
        !unit.has_owners()) {
      share = context_.device.allocate(share.shape(), DType::kFloat32, MemoryCategory::kWorkspace,
                                       "fp32_gradients");
      context_.device.run(Cast{unit.gradient_share, share, kWiden});
    }
    shares.push_back(share);
  }
  return shares;
}

void Optimizer::update_unit(std::size_t index, const UpdateStep& update) {
  ParameterUnit& unit = store_.units()[index];
  if (unit.is_frozen()) return;
  OptimizerState& state = states_[index];
  const Tensor& gradients = update.gradients[index];
  if (!is_offloaded()) {
    update_share(unit, state, {gradients, unit.weight_share, kAdamW}, update);
    const MuonSettings settings{settings_.rate, settings_.momentum, settings_.weight_decay};
    Muon(context_, store_, settings)
        .update(unit, state, {gradients, unit.weight_share, update.scale});
    return;
  }
  Device& device = context_.device;
  const bool copies = !store_.is_on_host(unit);
  if (copies) device.run(Copy{gradients, state.host_gradients, kGradientsDown});
  update_share(unit, state, {state.host_gradients, state.host_weights, kHostAdamW}, update);
  if (copies) device.run(Copy{state.host_weights, unit.weight_share, kWeightsUp});
}

// Updates the elements that AdamW updates.
void Optimizer::update_share(ParameterUnit& unit, OptimizerState& state, const UpdateOperands& with,
                             const UpdateStep& update) {
  for (const UpdatedRange& range : updated_ranges(store_, unit)) {
    if (range.updater != OptimizerKind::kAdamW) continue;
    const std::int64_t at = range.begin - store_.share_begin(unit);
    context_.device.run(AdamW{.master = state.master.slice(range.begin, range.count),
                              .momentum = state.momentum.slice(range.begin, range.count),
                              .variance = state.variance.slice(range.begin, range.count),
                              .gradient = with.gradients.slice(at, range.count),
                              .weights = with.weights.slice(at, range.count),
                              .rate = static_cast<float>(settings_.rate),
                              .beta1 = static_cast<float>(settings_.beta1),
                              .beta2 = static_cast<float>(settings_.beta2),
                              .epsilon = static_cast<float>(settings_.epsilon),
                              .decay = range.decay ? static_cast<float>(settings_.weight_decay) : 0,
                              .gradient_scale = static_cast<float>(update.scale),
                              .step = update.step,
                              .label = with.label});
  }
}

void Optimizer::gather_weights(ParameterUnit& unit) {
  if (unit.is_frozen()) return;
  if (unit.has_owners()) {
    for (const Parameter& p : unit.parameters()) {
      store_.data_group(unit).broadcast(p.weight, p.owner, kGatherWeights);
    }
    return;
  }
  const int zero = store_.zero_stage(unit);
  if (zero == 0 || zero == 3) return;
  store_.data_group(unit).all_gather(unit.weight_share, unit.weights, kGatherWeights);
}

}  // namespace tpsim
