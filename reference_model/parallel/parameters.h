// The weights of a rank and their gradients, in flat buffers that ZeRO can cut.
//
// Parameters live in units (a block, the word embeddings, ...). A unit is one flat range: sharded
// tensors first, tensors that every tensor-parallel rank repeats last, padded so that the ranks of
// its data group own equal shares: data x context parallel, of experts those of them that hold the
// same. ZeRO works unit by unit:
//   stage 0, 1  weights and gradients are whole
//   stage 2     a unit's gradients exist while its backward runs, then only this rank's share
//   stage 3     so do its weights, gathered around every forward and backward
// The optimizer owns everything (stage 0) or this rank's share (1 to 3).
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// What is special about a unit: it is the table of words; repeats the one that lives on another
// stage, which counts it (tied head); or holds experts.
enum class UnitRole : std::uint8_t { kPlain, kWordEmbeddings, kRepeatedWordEmbeddings, kExperts };

// How a rank's tensor is cut from the global one.
// kPartial: whole on every rank, whose gradient sees only its own heads, so that the ranks' sum is
// the gradient.
enum class Sharding : std::uint8_t { kReplicated, kRows, kColumns, kPartial };
enum class InitialValue : std::uint8_t { kNormal, kOnes, kZeros };

struct ParameterSpec {
  std::string name;  // as in the checkpoint, without the "transformer." prefix
  Shape shape;       // local
  Sharding sharding = Sharding::kReplicated;
  InitialValue initial = InitialValue::kNormal;
  double deviation = 0.02;
  std::int64_t global_rows = 0;  // real extent of the first dimension, without padding
  // Of a matrix: the first thing that a micro-batch does to its gradient is a product.
  bool is_multiplied = true;
};

// The tensors of a unit, in the order in which they are told; names stand behind a prefix. Extents
// are the whole model's: what is sharded is cut over `ranks`.
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
  void vector(const std::string& name, std::int64_t rows, InitialValue initial,
              Sharding sharding = Sharding::kReplicated);
  // Of a norm: starts as a factor of one.
  void gain(const std::string& name, std::int64_t rows, Sharding sharding = Sharding::kReplicated);
  // The matrix `name`.weight, and `name`.bias, of which a rank holds its own rows.
  void linear(const std::string& name, const std::pair<std::int64_t, std::int64_t>& extents,
              Sharding sharding, bool has_bias);

  bool empty() const { return specs_.empty(); }
  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  const RankContext& context_;
  std::string prefix_;
  std::int64_t ranks_;
  std::vector<ParameterSpec> specs_;
};

struct Parameter {
  ParameterSpec spec;
  std::int64_t offset = 0;  // in its unit
  Tensor weight;            // undefined while ZeRO-3 has it cut
  Tensor gradient;          // undefined while there is none
  // The gradient holds nothing yet: a matrix product may overwrite it.
  bool gradient_is_fresh = false;
  // [3, 2] fp32, where products are rounded with scales of steps before (delayed_scales.h): of its
  // products' inputs, of itself, and of the gradients of their results.
  Tensor scales = {};

  bool is_matrix() const { return spec.shape.rank() >= 2; }
  bool is_multiplied() const { return is_matrix() && spec.is_multiplied; }
};

// beta for a product that adds to p.gradient: 0 the first time, 1 afterwards. For ops that can only
// add, zero_if_fresh clears the gradient first.
float accumulation_beta(Parameter& p);
void zero_if_fresh(Device& device, Parameter& p);
// Of a parameter that may be absent; the gradient as ops take it that can only add.
inline Tensor weight_of(const Parameter* p) { return p != nullptr ? p->weight : Tensor(); }
Tensor gradient_of(Device& device, Parameter* p);

// A range of a unit whose elements are treated alike by the optimizer.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool decay = false;          // weight decay applies: tensors of two or more dimensions
  bool counts_in_norm = true;  // false on the ranks that merely repeat it
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

  Tensor weights;          // whole, flat; undefined while cut
  Tensor weight_share;     // this rank's share in its data group, flat
  Tensor gradients;        // whole, flat
  Tensor gradient_share;   // what the optimizer reads
  Tensor gradient_buffer;  // whole, flat: what the parameters' gradients are slices of

 private:
  friend class ParameterStore;
  std::int64_t size_ = 0;
  std::int64_t replicated_begin_ = 0;
  std::int64_t partial_begin_ = 0;  // tensors of Sharding::kPartial come last
  UnitRole role_ = UnitRole::kPlain;
  std::deque<Parameter> parameters_;
  std::vector<Segment> segments_;
  Tensor pending_gradients_;     // of this micro-batch, not yet accumulated
  bool is_reduced_ = false;      // over the data group, in this step; or that has begun
  bool share_is_fresh_ = false;  // ZeRO 2, 3: the accumulated share holds nothing yet
};

// A tensor of the checkpoint that is not trained, [n] fp32.
struct Buffer {
  std::string name;
  Tensor values;
};

class ParameterStore {
 public:
  explicit ParameterStore(const RankContext& context) : context_(context) {}

  // Lays out a new unit; its buffers exist after materialize().
  ParameterUnit& add_unit(std::vector<ParameterSpec> specs, UnitRole role = UnitRole::kPlain);
  // Zeros until a checkpoint is read.
  Tensor add_buffer(const std::string& name, std::int64_t elements);
  const std::deque<Buffer>& buffers() const { return buffers_; }
  // Allocates weights and gradient buffers of all units; initial values are drawn by name and
  // global index, so that every layout starts equal.
  void materialize(std::uint64_t seed);

  // Around a unit's forward / backward.
  void begin_forward(ParameterUnit& unit);
  void end_forward(ParameterUnit& unit);
  void begin_backward(ParameterUnit& unit);
  void end_backward(ParameterUnit& unit);
  // After a model chunk's backward: gradients that were produced beside the accumulation buffer
  // are added to it.
  void accumulate_pending();
  // Before a model chunk's backward: whether it is the chunk's last of the step. Where the software
  // reduces gradients beside backward, a unit's reduction begins then when its backward ends.
  void set_last_backward(bool is_last) { is_last_backward_ = is_last; }

  // Gradients of a unit over its tensor group, and of stages 0 and 1 over its data group. Does
  // nothing for a unit of which that has been done, or has begun, in this step.
  void reduce_partials(ParameterUnit& unit);
  void reduce_over_data_parallel(ParameterUnit& unit);
  // Stages 2 and 3, before a block's units end their backward, before the embedding's, and after a
  // chunk's: the shares of the layer before have been added up.
  void finish_shares();
  // Every reduction that has begun is done.
  void finish_reductions();

  // Before the first micro-batch: clears the accumulated gradients, or, where the software has that
  // micro-batch overwrite them, what no product writes.
  void clear_gradients();
  // What products are to overwrite holds nothing, or all gradients do hold something: around the
  // first micro-batch, where it may be a record that the host knows nothing of.
  void set_fresh(bool fresh);

  const std::deque<ParameterUnit>& units() const { return units_; }
  std::deque<ParameterUnit>& units() { return units_; }
  // The ranks that hold a unit's weights, and those that share them.
  Communicator& data_group(const ParameterUnit& unit) const;
  Communicator& tensor_group(const ParameterUnit& unit) const;
  int zero_stage(const ParameterUnit& unit) const;  // 0 where its data group has one rank
  // Of gradients, from one micro-batch to the next; otherwise they are whole until all are done.
  bool keeps_shares(const ParameterUnit& unit) const;
  // Of whole gradients, which add up over micro-batches; a share is their part where it has no
  // other.
  DType whole_dtype(const ParameterUnit& unit) const;
  bool has_own_share(const ParameterUnit& unit) const;
  std::int64_t share_size(const ParameterUnit& unit) const;
  std::int64_t share_begin(const ParameterUnit& unit) const;

 private:
  // A share, inside the unit's whole gradients, on its way to where stages 2 and 3 accumulate it.
  struct ShareOnItsWay {
    ParameterUnit* unit = nullptr;
    Tensor share;
  };

  // Gradients of tensors that every tensor-parallel rank repeats, each rank having seen its part of
  // the sequence, or of the heads: their sum. Without sequence parallelism those of kPartial alone.
  void reduce_sequence_partials(ParameterUnit& unit, const Tensor& gradients);
  Communicator& reduction_group(const ParameterUnit& unit) const;
  bool overlaps_reduction() const { return context_.options.overlap_gradient_reduction; }
  // Of stages 0 and 1: all of the step's gradients have been added up.
  void gradients_complete(ParameterUnit& unit);
  void bind_weights(ParameterUnit& unit);
  void bind_gradients(ParameterUnit& unit, const Tensor& buffer);
  void clear_all_but_products(ParameterUnit& unit);
  void initialize(const ParameterUnit& unit, Parameter& parameter, std::uint64_t seed);
  void gather_weights(ParameterUnit& unit);
  void release_weights(ParameterUnit& unit);
  void clear_gaps(ParameterUnit& unit, const Tensor& buffer);
  void reduce_into_share(ParameterUnit& unit, const Tensor& whole);
  void accumulate_pending(ParameterUnit& unit);
  // In the dtype that they are reduced in.
  Tensor as_reduced(const Tensor& whole);

  const RankContext& context_;
  std::deque<ParameterUnit> units_;
  std::deque<Buffer> buffers_;
  bool is_last_backward_ = false;
  std::vector<ShareOnItsWay> on_their_way_;
};

}  // namespace tpsim
