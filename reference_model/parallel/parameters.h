// Weights and gradients of a rank in flat buffers, which ZeRO shards. Corresponds to Megatron's
// DistributedDataParallel and MemoryBuffer.
//
// A unit (a block, the word embeddings, ...) is one flat range: tensor-parallel shards first,
// replicated tensors last. Padding gives the ranks of the unit's data group (data x context
// parallel; for experts the ranks with the same experts) equal shares. ZeRO works unit by unit:
//   stage 0, 1  weights and gradients are whole
//   stage 2     whole gradients exist during the unit's backward; then only this rank's share
//   stage 3     whole weights exist during the unit's forward and backward (all-gather before each)
// The optimizer owns all elements (stage 0) or this rank's share (1 to 3). With an optimizer that
// needs whole matrices and stage 1, every tensor of a block has one owner in the data group
// instead: gradients are all-reduced, and owners broadcast the updated weights.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/software/optimizer_kinds.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// Labels of the memory of frozen weights, whole or sharded, and of the gather of their shards.
inline constexpr const char* kFrozenWeights = "frozen_weights";
inline constexpr const char* kGatherOfFrozen = "zero3.gather_frozen_weights";
// Labels of shards in host memory, and of their copies to and from the device.
inline constexpr const char* kWeightShare = "weight_share";
inline constexpr const char* kUploadWeights = "host.upload_weights";
inline constexpr const char* kUploadFrozen = "host.upload_frozen_weights";
inline constexpr const char* kStoreGradients = "host.store_gradients";
inline constexpr const char* kAddGradients = "host.accumulate_gradients";

// Kind of a unit. kRepeatedWordEmbeddings: the copy of tied word embeddings on the last stage,
// which the gradient norm does not count again.
enum class UnitRole : std::uint8_t { kPlain, kWordEmbeddings, kRepeatedWordEmbeddings, kExperts };

// How a tensor is sharded over tensor-parallel ranks. For a linear weight [out, in] kRows is
// ColumnParallelLinear and kColumns is RowParallelLinear. kPartial: replicated, but each rank
// computes the gradient of its own heads only, so that gradients are summed over the ranks.
enum class Sharding : std::uint8_t { kReplicated, kRows, kColumns, kPartial };
enum class InitialValue : std::uint8_t { kNormal, kOnes, kZeros };

struct ParameterSpec {
  std::string name;  // as in the checkpoint, without the "transformer." prefix
  Shape shape;       // local
  Sharding sharding = Sharding::kReplicated;
  InitialValue initial = InitialValue::kNormal;
  double deviation = 0.02;
  std::int64_t global_rows = 0;  // extent of the first dimension over all ranks, without padding
  // For a matrix: whether a GEMM is the first op that writes its gradient in a micro-batch.
  bool is_multiplied = true;
  std::int64_t parts = part_bit(WeightPart::kOthers);  // bits of WeightPart
  bool is_trained = true;                              // set by SpecList::take(); false: frozen

  bool is_adapter() const { return parts == part_bit(WeightPart::kAdapters); }
};

// Names of the two matrices of the adapter of a linear layer: [rank, in] and [out, rank].
std::string adapter_down_name(const std::string& linear);
std::string adapter_up_name(const std::string& linear);

// Collects the tensors of a unit. Adds a prefix to names. Extents are those of the whole model;
// sharded dimensions are divided by `ranks`.
class SpecList {
 public:
  SpecList(const RankContext& context, std::string prefix)
      : SpecList(context, std::move(prefix), context.plan.degrees.tp) {}
  SpecList(const RankContext& context, std::string prefix, std::int64_t ranks)
      : context_(context), prefix_(std::move(prefix)), ranks_(ranks) {}

  const RankContext& context() const { return context_; }
  const ModelSpec& model() const { return context_.model; }
  ParameterSpec& matrix(const std::string& name, std::int64_t rows, std::int64_t cols,
                        Sharding sharding = Sharding::kReplicated);
  ParameterSpec& vector(const std::string& name, std::int64_t rows, InitialValue initial,
                        Sharding sharding = Sharding::kReplicated);
  // Adds the weight of a norm, initialized so that the norm multiplies by one: 0 for models that
  // add one to the weight (norm_plus_one), else 1.
  void gain(const std::string& name, std::int64_t rows, Sharding sharding = Sharding::kReplicated);
  // Adds `name`.weight and `name`.bias. The bias is sharded if the weight is sharded by rows. Adds
  // the adapter's matrices if the layer is one of the fine-tuning's targets; `targets`: bits of
  // WeightPart.
  void linear(const std::string& name, const std::pair<std::int64_t, std::int64_t>& extents,
              Sharding sharding, bool has_bias, std::int64_t targets = 0);
  // Adds the adapter's matrices of a layer if the layer is a target.
  void adapter(const std::string& name, const std::pair<std::int64_t, std::int64_t>& extents,
               Sharding sharding, std::int64_t targets);

  void reserve(std::int64_t tensors) { specs_.reserve(static_cast<std::size_t>(tensors)); }
  bool empty() const { return specs_.empty(); }
  // Return the tensors of a block, or tensors around the blocks.
  std::vector<ParameterSpec> take();
  std::vector<ParameterSpec> take_outer();

 private:
  const RankContext& context_;
  std::string prefix_;
  std::int64_t ranks_;
  std::vector<ParameterSpec> specs_;
};

struct Parameter {
  ParameterSpec spec;
  std::int64_t offset = 0;  // in its unit
  Tensor weight = {};       // with ZeRO-3 undefined outside forward and backward
  Tensor gradient = {};     // undefined outside the unit's backward
  // Whether the gradient has no value yet, so that a GEMM may overwrite it.
  bool gradient_is_fresh = false;
  // [3, 2] fp32 with delayed scaling (delayed_scales.h), else undefined: scales of the GEMM's
  // input, of the weight, and of the output's gradient.
  Tensor scales = {};

  // The adapter's matrices of a linear layer [rank, in] and [out, rank]; null: no adapter.
  Parameter *adapter_down = nullptr, *adapter_up = nullptr;

  OptimizerKind updater{};  // of this tensor
  int owner = 0;            // in the data group, if the unit has owners

  bool is_matrix() const { return spec.shape.rank() >= 2; }
  bool is_multiplied() const { return is_matrix() && spec.is_multiplied; }
  bool is_trained() const { return spec.is_trained; }
  bool is_adapted() const { return adapter_down != nullptr; }
};

// Returns beta for a GEMM that adds to p.gradient: 0 if the gradient is fresh, else 1. For ops that
// can only add, zero_if_fresh() clears a fresh gradient. Both mark the gradient as not fresh.
float accumulation_beta(Parameter& p);
void zero_if_fresh(Device& device, Parameter& p);
// weight_of() returns the weight, gradient_of() the gradient after zero_if_fresh(). Both return an
// undefined tensor if `p` is null, and gradient_of() also if `p` is frozen.
inline Tensor weight_of(const Parameter* p) { return p != nullptr ? p->weight : Tensor(); }
Tensor gradient_of(Device& device, Parameter* p);

// A range of a unit that has the same optimizer and weight decay, and is counted in the gradient
// norm as a whole or not at all.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  OptimizerKind updater{};
  bool decay = false;  // weight decay applies: tensors of two or more dimensions
  // False for replicated tensors on all but one tensor-parallel rank, as Megatron's
  // param_is_not_tensor_parallel_duplicate.
  bool counts_in_norm = true;
};

class ParameterUnit {
 public:
  std::int64_t size() const { return size_; }  // padded
  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  std::int64_t replicated_begin() const { return replicated_begin_; }
  std::int64_t partial_begin() const { return partial_begin_; }
  const std::vector<Segment>& segments() const { return segments_; }
  bool repeats_first_stage() const { return role_ == UnitRole::kRepeatedWordEmbeddings; }
  bool holds_word_embeddings() const {
    return role_ == UnitRole::kWordEmbeddings || repeats_first_stage();
  }
  bool holds_experts() const { return role_ == UnitRole::kExperts; }
  // Whether each tensor has one owner in the data group, which alone updates the tensor.
  bool has_owners() const { return has_owners_; }
  // Whether the unit's tensors have no gradients and are not updated.
  bool is_frozen() const { return is_frozen_; }
  // The unit of the trained tensors of the same layer, such as adapters; null if all are frozen or
  // all are trained. begin_forward() and the like include this unit.
  ParameterUnit* trained_part() const { return trained_part_; }

  Tensor weights;          // whole, flat; undefined while sharded (ZeRO-3)
  Tensor weight_share;     // this rank's share in its data group, flat
  Tensor gradients;        // whole, flat; accumulated over micro-batches
  Tensor gradient_share;   // input of the optimizer
  Tensor gradient_buffer;  // whole, flat; Parameter::gradient is a slice of it

 private:
  friend class ParameterStore;
  std::int64_t size_ = 0;
  // Without the padding for equal shares, which gradients that are added to whole ones do not need.
  std::int64_t unpadded_size_ = 0;
  std::int64_t replicated_begin_ = 0;
  std::int64_t partial_begin_ = 0;  // tensors of Sharding::kPartial come last
  UnitRole role_ = UnitRole::kPlain;
  bool has_owners_ = false;
  bool is_frozen_ = false;
  ParameterUnit* trained_part_ = nullptr;
  std::deque<Parameter> parameters_;
  std::vector<Segment> segments_;
  Tensor pending_gradients_;     // of this micro-batch, not yet accumulated
  bool is_reduced_ = false;      // the data-parallel reduction of this step has begun or ended
  bool share_is_fresh_ = false;  // ZeRO 2, 3: the accumulated share has no value yet
};

// A tensor of the checkpoint that has no gradient, [n] fp32.
struct Buffer {
  std::string name;
  Tensor values;
};

class ParameterStore {
 public:
  explicit ParameterStore(const RankContext& context) : context_(context) {}

  // Adds a unit and computes its layout. Its buffers exist after materialize(). If only a part of
  // the tensors is trained, this part becomes a unit of its own: trained_part().
  ParameterUnit& add_unit(std::vector<ParameterSpec> specs, UnitRole role = UnitRole::kPlain);
  // Adds a buffer of zeros.
  Tensor add_buffer(const std::string& name, std::int64_t elements);
  const std::deque<Buffer>& buffers() const { return buffers_; }
  // Allocates weights and gradients of all units. Initial values depend on seed, name and global
  // index only, so that every layout starts with the same weights. Null: no values.
  void materialize(std::optional<std::uint64_t> seed);
  // Assigns the tensors of units with owners, so that the work of updates is balanced over all such
  // units of the rank. Called by materialize().
  void assign_owners();
  // Makes this rank the owner of all tensors, to trace all work of owners.
  void own_all_tensors() { owns_all_ = true; }
  // Whether this rank updates the tensor, or its share of the tensor.
  bool owns(const ParameterUnit& unit, const Parameter& p) const;

  // Call before and after a unit's forward and backward. ZeRO-3 gathers and frees weights here; the
  // end of backward accumulates gradients, and reduces them with ZeRO 2 and 3.
  void begin_forward(ParameterUnit& unit);
  void end_forward(ParameterUnit& unit);
  void begin_backward(ParameterUnit& unit);
  void end_backward(ParameterUnit& unit);
  // Call after each backward of a model chunk. Adds the micro-batch's gradients that are in
  // separate buffers to the accumulation buffers.
  void accumulate_pending();
  // Call before each backward of a model chunk. `is_last`: this is the chunk's last backward in the
  // step. With overlapped reductions, the last backward of a unit starts its gradient reduction.
  void set_last_backward(bool is_last) { is_last_backward_ = is_last; }

  // reduce_partials() sums whole gradients over the tensor group, reduce_over_data_parallel() over
  // the data group. Both do nothing if the data-parallel reduction has begun in this step, or if
  // gradients stay sharded (keeps_shares()).
  void reduce_partials(ParameterUnit& unit);
  void reduce_over_data_parallel(ParameterUnit& unit);
  // ZeRO 2 and 3: waits for the reduce-scatters in flight and accumulates the reduced shares.
  // Called before a block's backward ends, before the embedding's backward, and after a chunk's
  // backward.
  void finish_shares();
  // Waits for all reductions in flight.
  void finish_reductions();

  // Call before the first micro-batch. Clears the accumulated gradients. If the first micro-batch
  // overwrites gradients, clears only gradients that no GEMM writes.
  void clear_gradients();
  // Marks the gradients that GEMMs write as fresh, or all as not fresh. RankModel::run_whole()
  // calls this around the first micro-batch, because a replayed CUDA graph does not update the
  // marks.
  void set_fresh(bool fresh);

  const std::deque<ParameterUnit>& units() const { return units_; }
  std::deque<ParameterUnit>& units() { return units_; }
  // data_group(): ranks that hold the same weights of a unit. tensor_group(): ranks that hold the
  // tensor-parallel shards of a unit.
  Communicator& data_group(const ParameterUnit& unit) const;
  Communicator& tensor_group(const ParameterUnit& unit) const;
  // 0 if its data group has one rank and keeps nothing in host memory, or if its tensors have
  // owners.
  int zero_stage(const ParameterUnit& unit) const;
  // Whether the shards of weights and gradients are in host memory.
  bool is_on_host(const ParameterUnit& unit) const {
    return offloads_weights(context_.plan) && zero_stage(unit) == 3;
  }
  // Whether gradients stay sharded between micro-batches (ZeRO 2 and 3). Otherwise whole gradients
  // accumulate until the end of the step.
  bool keeps_shares(const ParameterUnit& unit) const;
  // Dtype of the whole gradients, which accumulate over micro-batches.
  DType whole_dtype(const ParameterUnit& unit) const;
  // Whether the gradient share is a separate buffer, instead of a slice of the whole gradients.
  bool has_own_share(const ParameterUnit& unit) const;
  std::int64_t share_size(const ParameterUnit& unit) const;
  std::int64_t share_begin(const ParameterUnit& unit) const;

 private:
  ParameterUnit& add_tensors(std::vector<ParameterSpec> specs, UnitRole role);
  // A gradient share whose reduce-scatter has begun and that is not yet accumulated (ZeRO 2 and 3).
  // `share` is a slice of the unit's whole gradients.
  struct ShareOnItsWay {
    ParameterUnit* unit = nullptr;
    Tensor share;
  };

  // Sums gradients of replicated tensors over the tensor group, because each rank computes them
  // from a part of the sequence or of the heads. Without sequence parallelism, sums only tensors of
  // Sharding::kPartial.
  void reduce_sequence_partials(ParameterUnit& unit, const Tensor& gradients);
  Communicator& reduction_group(const ParameterUnit& unit) const;
  bool overlaps_reduction() const { return context_.options.overlap_gradient_reduction; }
  // Called after a micro-batch's gradients are added to the whole gradients of a unit. With
  // overlapped reductions, starts the reduction after the last micro-batch.
  void gradients_complete(ParameterUnit& unit);
  void bind_weights(ParameterUnit& unit);
  void bind_gradients(ParameterUnit& unit, const Tensor& buffer);
  void clear_all_but_products(ParameterUnit& unit);
  void initialize(const ParameterUnit& unit, Parameter& parameter, std::uint64_t seed);
  void gather_weights(ParameterUnit& unit);
  void release_weights(ParameterUnit& unit);
  void clear_gaps(const ParameterUnit& unit, const Tensor& buffer);
  void reduce_into_share(ParameterUnit& unit, const Tensor& whole);
  void accumulate_pending(ParameterUnit& unit);
  // Returns the gradients in the dtype in which they are reduced. Casts them to a copy if their
  // dtype differs.
  Tensor as_reduced(const Tensor& whole);

  const RankContext& context_;
  std::deque<ParameterUnit> units_;
  std::deque<Buffer> buffers_;
  bool is_last_backward_ = false;
  bool owns_all_ = false;
  std::vector<ShareOnItsWay> on_their_way_;
};

}  // namespace tpsim
