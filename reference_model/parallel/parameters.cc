#include "reference_model/parallel/parameters.h"

#include <algorithm>
#include <tuple>

#include "core/base/text.h"
#include "reference_model/parallel/weight_gradients.h"

namespace tpsim {
namespace {

constexpr Label kInitializeUnit{ModelPart::kInitialization, "initialize"};
constexpr Label kGatherZero3{ModelPart::kParameterGather, "zero3.gather_weights"};
constexpr Label kGatherFrozen{ModelPart::kParameterGather, kGatherOfFrozen};
constexpr Label kZeroGradient{ModelPart::kMicroBatchGradients, "zero_gradient"};
constexpr Label kWidenGradients{ModelPart::kGradientAccumulation, "widen_gradients"};
constexpr Label kClearGap{ModelPart::kMicroBatchGradients, "clear_gap"};
constexpr Label kClearGradients{ModelPart::kZeroGrad, "clear_gradients"};
constexpr Label kAccumulateGradients{ModelPart::kGradientAccumulation, "accumulate_gradients"};

constexpr std::int64_t kAlignment = 64;  // elements: 128 bytes in bf16

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

bool is_whole(const ParameterSpec& spec) {
  return spec.sharding == Sharding::kReplicated || spec.sharding == Sharding::kPartial;
}

// Offset basis of FNV-1a. The hash of a tensor's name selects its random numbers, and is the same
// on every rank and in every build.
constexpr std::uint64_t kNameHashStart = 1469598103934665603ULL;

// Whether the tensor is the weight of a linear layer in a block.
bool is_block_matrix(const ParameterSpec& spec, UnitRole role) {
  const bool in_block = role == UnitRole::kPlain || role == UnitRole::kExperts;
  return in_block && spec.shape.rank() >= 2 && spec.is_multiplied;
}

// Appends the segment, or extends the last one if it has the same properties.
void append(std::vector<Segment>& segments, const Segment& segment) {
  if (!segments.empty()) {
    Segment& last = segments.back();
    if (last.updater == segment.updater && last.decay == segment.decay &&
        last.counts_in_norm == segment.counts_in_norm) {
      last.end = segment.end;
      return;
    }
  }
  segments.push_back(segment);
}

}  // namespace

float accumulation_beta(Parameter& p) {
  const float beta = p.gradient_is_fresh ? 0.0F : 1.0F;
  p.gradient_is_fresh = false;
  return beta;
}

void zero_if_fresh(Device& device, Parameter& p) {
  if (!p.is_trained()) return;
  if (p.gradient_is_fresh) device.run(Fill{p.gradient, 0.0F, kZeroGradient});
  p.gradient_is_fresh = false;
}

Tensor gradient_of(Device& device, Parameter* p) {
  if (p == nullptr || !p->is_trained()) return {};
  zero_if_fresh(device, *p);
  return p->gradient;
}

ParameterUnit& ParameterStore::add_tensors(std::vector<ParameterSpec> specs, UnitRole role) {
  ParameterUnit& unit = units_.emplace_back();
  unit.role_ = role;
  unit.is_frozen_ = !specs.front().is_trained;
  const Communicator& sharers = tensor_group(unit);
  const auto is_replicated = [&](const ParameterSpec& spec) {
    return is_whole(spec) && sharers.size() > 1;
  };
  // Sharded tensors precede replicated ones, and matrices precede vectors. This gives few segments,
  // and replicated tensors are one range at the end.
  const auto comes_first = [&](const ParameterSpec& a, const ParameterSpec& b) {
    const auto order = [&](const ParameterSpec& s) {
      const bool replicated = is_replicated(s);
      return std::tuple(replicated, replicated && s.sharding == Sharding::kPartial,
                        s.shape.rank() < 2);
    };
    return order(a) < order(b);
  };
  if (!std::is_sorted(specs.begin(), specs.end(), comes_first)) {
    std::stable_sort(specs.begin(), specs.end(), comes_first);
  }
  std::int64_t end = 0;
  unit.replicated_begin_ = unit.partial_begin_ = -1;
  for (ParameterSpec& spec : specs) {
    const bool replicated = is_replicated(spec);
    if (replicated && unit.replicated_begin_ < 0) unit.replicated_begin_ = end;
    const bool partial = replicated && spec.sharding == Sharding::kPartial;
    if (partial && unit.partial_begin_ < 0) unit.partial_begin_ = end;
    const std::int64_t begin = end;
    end = round_up(begin + spec.shape.elements(), kAlignment);
    const OptimizerKind updater =
        updater_of(context_.options.optimizer_kind, is_block_matrix(spec, role));
    append(unit.segments_, {begin, end, updater, spec.shape.rank() >= 2,
                            !unit.repeats_first_stage() && (!replicated || sharers.rank() == 0)});
    unit.parameters_.push_back({.spec = std::move(spec), .offset = begin, .updater = updater});
    if (row_of(updater).needs_whole_matrices && !unit.is_frozen_) {
      unit.has_owners_ = context_.plan.zero == 1 && data_group(unit).size() > 1;
    }
  }
  unit.unpadded_size_ = end;
  unit.size_ = round_up(end, kAlignment * data_group(unit).size());
  unit.segments_.back().end = unit.size_;
  if (unit.replicated_begin_ < 0) unit.replicated_begin_ = unit.size_;
  if (unit.partial_begin_ < 0) unit.partial_begin_ = unit.size_;
  return unit;
}

Tensor ParameterStore::add_buffer(const std::string& name, std::int64_t elements) {
  Tensor values =
      context_.device.allocate({elements}, DType::kFloat32, MemoryCategory::kWorkspace, "buffer");
  context_.device.run(Fill{values, 0.0F, kInitializeUnit});
  buffers_.push_back({name, values});
  return values;
}

Communicator& ParameterStore::data_group(const ParameterUnit& unit) const {
  return unit.holds_experts() ? context_.groups.expert_data : context_.groups.data;
}

Communicator& ParameterStore::tensor_group(const ParameterUnit& unit) const {
  return unit.holds_experts() ? context_.groups.expert_tensor : context_.groups.tensor;
}

int ParameterStore::zero_stage(const ParameterUnit& unit) const {
  const bool shards = data_group(unit).size() > 1 || offloads_weights(context_.plan);
  return shards && !unit.has_owners() ? context_.plan.zero : 0;
}

bool ParameterStore::keeps_shares(const ParameterUnit& unit) const {
  return zero_stage(unit) >= 2 && !holds_whole_gradients(context_.plan, context_.options);
}

DType ParameterStore::whole_dtype(const ParameterUnit& unit) const {
  return zero_stage(unit) >= 2 ? whole_gradient_dtype(context_.plan, context_.options)
                               : context_.plan.gradient_dtype;
}

bool ParameterStore::has_own_share(const ParameterUnit& unit) const {
  return keeps_shares(unit) || whole_dtype(unit) != context_.plan.gradient_dtype;
}

std::int64_t ParameterStore::share_size(const ParameterUnit& unit) const {
  return zero_stage(unit) == 0 ? unit.size() : unit.size() / data_group(unit).size();
}

std::int64_t ParameterStore::share_begin(const ParameterUnit& unit) const {
  return zero_stage(unit) == 0 ? 0 : data_group(unit).rank() * share_size(unit);
}

void ParameterStore::materialize(std::optional<std::uint64_t> seed) {
  assign_owners();
  Device& device = context_.device;
  for (ParameterUnit& unit : units_) {
    const char* const label = unit.is_frozen() ? kFrozenWeights : "weights";
    unit.weights =
        device.allocate({unit.size()}, context_.plan.dtype, MemoryCategory::kWeights, label);
    device.run(Fill{unit.weights, 0.0F, kInitializeUnit});
    bind_weights(unit);
    if (seed) {
      for (Parameter& parameter : unit.parameters()) initialize(unit, parameter, *seed);
    }
    unit.weight_share = unit.weights.slice(share_begin(unit), share_size(unit));
    if (zero_stage(unit) == 3) {
      Tensor share =
          device.allocate({share_size(unit)}, context_.plan.dtype,
                          is_on_host(unit) ? MemoryCategory::kHost : MemoryCategory::kWeights,
                          unit.is_frozen() ? kFrozenWeights : kWeightShare);
      device.run(Copy{unit.weight_share, share, kInitializeUnit});
      unit.weight_share = share;
      release_weights(unit);
    }
    if (unit.is_frozen()) continue;
    if (!keeps_shares(unit)) {
      unit.gradients = device.allocate({unit.size()}, whole_dtype(unit), MemoryCategory::kGradients,
                                       "gradients");
    }
    unit.gradient_share =
        has_own_share(unit)
            ? device.allocate({share_size(unit)}, context_.plan.gradient_dtype,
                              is_on_host(unit) ? MemoryCategory::kHost : MemoryCategory::kGradients,
                              "gradient_share")
            : unit.gradients.slice(share_begin(unit), share_size(unit));
  }
}

void ParameterStore::bind_weights(ParameterUnit& unit) {
  for (Parameter& p : unit.parameters()) {
    p.weight = unit.weights.defined() ? unit.weights.slice(p.offset, p.spec.shape) : Tensor();
  }
}

void ParameterStore::bind_gradients(ParameterUnit& unit, const Tensor& buffer) {
  unit.gradient_buffer = buffer;
  for (Parameter& p : unit.parameters()) {
    p.gradient = buffer.defined() ? buffer.slice(p.offset, p.spec.shape) : Tensor();
  }
}

void ParameterStore::initialize(const ParameterUnit& unit, Parameter& parameter,
                                std::uint64_t seed) {
  const ParameterSpec& spec = parameter.spec;
  const Communicator& sharers = tensor_group(unit);
  if (spec.initial == InitialValue::kZeros) return;
  Device& device = context_.device;
  if (spec.initial == InitialValue::kOnes) {
    device.run(Fill{parameter.weight, 1.0F, kInitializeUnit});
    return;
  }
  const std::int64_t rows = spec.shape[0], cols = spec.shape.cols();
  const bool by_rows = spec.sharding == Sharding::kRows;
  const bool by_cols = spec.sharding == Sharding::kColumns;
  const std::int64_t row_begin = by_rows ? sharers.rank() * rows : 0;
  // Rows beyond the vocabulary are padding and stay zero.
  const std::int64_t real = std::clamp<std::int64_t>(spec.global_rows - row_begin, 0, rows);
  if (real == 0) return;
  device.run(InitNormal{.x = parameter.weight.slice(0, Shape{real, cols}),
                        .seed = seed,
                        .tensor_id = fnv1a(spec.name, kNameHashStart),
                        .row_begin = row_begin,
                        .col_begin = by_cols ? sharers.rank() * cols : 0,
                        .global_cols = by_cols ? cols * sharers.size() : cols,
                        .deviation = static_cast<float>(spec.deviation),
                        .label = kInitializeUnit});
}

void ParameterStore::gather_weights(ParameterUnit& unit) {
  if (zero_stage(unit) != 3) return;
  const char* const label = unit.is_frozen() ? kFrozenWeights : "gathered_weights";
  unit.weights =
      context_.device.allocate({unit.size()}, context_.plan.dtype, MemoryCategory::kWeights, label);
  Tensor share = unit.weight_share;
  if (is_on_host(unit)) {
    const bool is_whole = data_group(unit).size() == 1;
    share = is_whole ? unit.weights
                     : context_.device.allocate(share.shape(), share.dtype(),
                                                MemoryCategory::kWeights, label);
    const char* const upload = unit.is_frozen() ? kUploadFrozen : kUploadWeights;
    context_.device.run(Copy{unit.weight_share, share, {ModelPart::kParameterGather, upload}});
  }
  data_group(unit).all_gather(share, unit.weights, unit.is_frozen() ? kGatherFrozen : kGatherZero3);
  bind_weights(unit);
}

void ParameterStore::release_weights(ParameterUnit& unit) {
  if (zero_stage(unit) != 3) return;
  unit.weights = Tensor();
  bind_weights(unit);
}

void ParameterStore::begin_forward(ParameterUnit& unit) {
  gather_weights(unit);
  if (unit.trained_part() != nullptr) gather_weights(*unit.trained_part());
}
void ParameterStore::end_forward(ParameterUnit& unit) {
  release_weights(unit);
  if (unit.trained_part() != nullptr) release_weights(*unit.trained_part());
}

void ParameterStore::begin_backward(ParameterUnit& unit) {
  gather_weights(unit);
  if (unit.trained_part() != nullptr) begin_backward(*unit.trained_part());
  if (unit.is_frozen()) return;
  const bool separate = !fuses_accumulation(context_.options);
  if (!keeps_shares(unit) && !separate) {
    bind_gradients(unit, unit.gradients);
    return;
  }
  const bool again = unit.pending_gradients_.defined();  // tied: head, then embedding
  if (!again) {
    const DType dtype = separate ? context_.plan.dtype : context_.plan.gradient_dtype;
    const std::int64_t size = keeps_shares(unit) ? unit.size() : unit.unpadded_size_;
    unit.pending_gradients_ =
        context_.device.allocate({size}, dtype, MemoryCategory::kGradients, "unit_gradients");
    clear_gaps(unit, unit.pending_gradients_);
    for (Parameter& p : unit.parameters()) p.gradient_is_fresh = true;
  }
  bind_gradients(unit, unit.pending_gradients_);
}

// Clears the gaps that alignment leaves between tensors, since the optimizer reads them.
void ParameterStore::clear_gaps(const ParameterUnit& unit, const Tensor& buffer) {
  const auto& parameters = unit.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t end = parameters[i].offset + parameters[i].spec.shape.elements();
    const auto next = i + 1 < parameters.size() ? parameters[i + 1].offset : buffer.elements();
    if (next > end) context_.device.run(Fill{buffer.slice(end, next - end), 0.0F, kClearGap});
  }
}

void ParameterStore::end_backward(ParameterUnit& unit) {
  if (unit.trained_part() != nullptr) end_backward(*unit.trained_part());
  if (unit.is_frozen()) return release_weights(unit);
  for (Parameter& p : unit.parameters()) zero_if_fresh(context_.device, p);
  if (unit.pending_gradients_.defined()) {
    // With ZeRO 2 and 3 gradients of any dtype accumulate when the unit's backward ends, as in
    // FSDP. Else gradients that need a cast accumulate after the chunk's backward.
    const bool at_once = zero_stage(unit) >= 2 || whole_dtype(unit) == context_.plan.dtype;
    if (keeps_shares(unit)) {
      const Tensor whole = std::exchange(unit.pending_gradients_, Tensor());
      reduce_sequence_partials(unit, whole);
      reduce_into_share(unit, as_reduced(whole));
    } else if (at_once) {
      accumulate_pending(unit);
    }
  } else {
    run_weight_gradient(context_, [this, &unit] { gradients_complete(unit); });
  }
  bind_gradients(unit, Tensor());
  release_weights(unit);
}

Tensor ParameterStore::as_reduced(const Tensor& whole) {
  const DType wide = context_.plan.gradient_dtype;
  const bool is_so = context_.options.reduce_dtype == ReduceDtype::kAsComputed;
  if (is_so || whole.dtype() == wide) return whole;
  Tensor copy = context_.device.allocate({whole.elements()}, wide, MemoryCategory::kGradients,
                                         "reduced_gradients");
  context_.device.run(Cast{whole, copy, kWidenGradients});
  return copy;
}

void ParameterStore::accumulate_pending() {
  for (ParameterUnit& unit : units_) accumulate_pending(unit);
}

void ParameterStore::accumulate_pending(ParameterUnit& unit) {
  if (!unit.pending_gradients_.defined()) return;
  Device& device = context_.device;
  for (const Parameter& p : unit.parameters()) {
    Tensor part = unit.pending_gradients_.slice(p.offset, p.spec.shape);
    if (part.dtype() != unit.gradients.dtype()) {
      const Tensor wide = device.allocate(p.spec.shape, unit.gradients.dtype(),
                                          MemoryCategory::kWorkspace, "widened_gradient");
      device.run(Cast{part, wide, kAccumulateGradients});
      part = wide;
    }
    device.run(Add{part, unit.gradients.slice(p.offset, p.spec.shape), kAccumulateGradients});
  }
  unit.pending_gradients_ = Tensor();
  gradients_complete(unit);
}

void ParameterStore::clear_gradients() {
  const bool overwrites = overwrites_gradients(context_.options);
  set_fresh(overwrites);
  for (ParameterUnit& unit : units_) {
    if (unit.is_frozen()) continue;
    unit.is_reduced_ = false;
    if (overwrites) {
      clear_all_but_products(unit);
    } else {
      const Tensor& kept = unit.gradients.defined() ? unit.gradients : unit.gradient_share;
      context_.device.run(Fill{kept, 0.0F, kClearGradients});
    }
  }
}

// Clears the gradients that no GEMM overwrites: vectors, embedding tables and alignment gaps.
// Adjacent ranges are cleared by one op.
void ParameterStore::clear_all_but_products(ParameterUnit& unit) {
  if (!unit.gradients.defined()) return;
  std::int64_t begin = 0;
  const auto clear_until = [&](std::int64_t end) {
    if (end == begin) return;
    context_.device.run(Fill{unit.gradients.slice(begin, end - begin), 0.0F, kClearGradients});
  };
  for (const Parameter& p : unit.parameters()) {
    if (!p.is_multiplied()) continue;
    clear_until(p.offset);
    begin = p.offset + p.spec.shape.elements();
  }
  clear_until(unit.size());
}

void ParameterStore::set_fresh(bool fresh) {
  for (ParameterUnit& unit : units_) {
    if (unit.is_frozen()) continue;
    // A unit with whole gradients writes its share only once in a step, in the final reduction. The
    // share is then always fresh.
    unit.share_is_fresh_ = has_own_share(unit) && (fresh || unit.gradients.defined());
    for (Parameter& p : unit.parameters()) p.gradient_is_fresh = fresh && p.is_multiplied();
  }
}

}  // namespace tpsim
