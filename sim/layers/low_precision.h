// Linear layers whose products take 8 or 4 bits, as Transformer Engine runs its recipes
// (core/plan/plan.h, Precision): the product itself, and the passes that round its operands.
//
// An operand is rounded row by row for its own product and column by column for the weight
// gradient, of which the latter is
//   read from the former, where the matrix units take 8 bits with one scale a tensor in either
//   orientation (those that take MXFP8 do);
//   made beside it, or from it where the operand was written or gathered in 8 bits;
//   rounded anew from 16 bits with blocks of scales, which differ by orientation.
// A norm writes its output in 8 bits where the scale is known before (kFp8). What sequence parallel
// ranks gather is rounded before it is sent, each rank its part. Scales of the tensor itself
// (kFp8Current, and the outer one of kNvFp4) take a pass for the greatest value. NVFP4 turns what
// the weight gradient reads by Hadamard matrices of 16 x 16, so that its columns are rounded from
// 16 bits in a pass of their own, and rounds gradients stochastically; weights have a scale for 16
// x 16. The turns (32 FLOPs an element, on the matrix units) and the drawn numbers (one of 32 bits
// for four elements) hide behind memory. Weights are rounded once a step, unless the software
// rounds anew (StackSpec::requantizes_in_backward). Where each product rounds for itself
// (StackSpec::quantizes_inside_gemm), passes are those of kernels/cuda/linear/low_precision.cu: one
// over either operand, two with a scale of the tensor's own, and a gradient's for both of its
// products at once. Both gradients' products of kFp8 and kFp8Current sum outside the matrix units
// (kSplitSums; Transformer Engine's use_split_accumulator, torchao's use_fast_accum). Not priced:
// the all-reduce of the greatest values (a few bytes a tensor).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Of a block; attention cores, the head and the router of experts keep their 16 bits.
bool is_linear_layer(const OpRecord& op);

// The recipe that a plan's linear layers take in this software.
Precision recipe_of(const StackSpec& stack, const Plan& plan);

// Whether the ranks of a stage agree on scales after every chunk: those of steps before, of all
// tensors at once.
bool exchanges_scales(const StackSpec& stack, const Plan& plan);

// The same product of narrow operands. The layout is that of y = x W^T: the others read copies.
OpRecord with_operands(const OpRecord& product, DType operands);

// An error that names what the device has, where its matrix units take no such operands.
Status check_precision(const DeviceFacts& device, Precision precision);
// And where the stack's library has no such products for them.
Status check_precision(const Scenario& scenario, Precision precision);

// What a recipe does to an operand beside multiplying it.
enum class RoundingPass : std::uint8_t {
  kNone,
  kRounding,            // all there is to it in one pass
  kGreatest,            // values, for the tensor's own scale: NVFP4's of both orientations
  kRows,                // rounded for the product itself
  kRowsStochastic,      // the same of gradients: up or down by chance, in proportion
  kHadamard,            // columns turned by 16 x 16 Hadamard matrices and rounded
  kHadamardStochastic,  // the same of gradients
};
// "rounded to nvfp4 by rows"; empty for other ops.
std::string name_of_pass(const OpRecord& op);
// What the recipe does to operands, for a report; empty for none.
std::string_view roundings_of(Precision recipe);

// Follows the events of one phase of a block, and says what the device runs.
class RoundedOperands {
 public:
  RoundedOperands(const Scenario& scenario, const Plan& plan);

  // What runs in the op's place: itself, or roundings and the product.
  std::vector<OpRecord> ops_for(const OpRecord& op);
  // What the collective sends.
  CollectiveRecord sent(const CollectiveRecord& record);

 private:
  double bytes_per_input(const OpRecord& product) const;
  double requantized_bytes(const OpRecord& product) const;
  void add_passes_in_product(std::vector<OpRecord>& ops, const OpRecord& product) const;
  void add_input_passes(std::vector<OpRecord>& ops, const OpRecord& product) const;
  void add_pass(std::vector<OpRecord>& ops, const OpRecord& product, RoundingPass pass,
                double elements, double bytes) const;

  Precision recipe_;
  DType operands_;
  bool any_orientation_ = false;
  bool rounds_anew_ = false;
  bool in_products_ = false;
  double gathered_parts_ = 1;  // ranks that gather one operand
  bool from_norm_ = false;
  bool is_gathered_ = false;
  const char* last_input_ = nullptr;  // the layer whose input was rounded last in forward
};

// A collective of the step's end as the ranks send it: weights kept in 8 bits are gathered in them,
// those of MXFP8 in 16, of which both orientations follow.
CollectiveRecord as_gathered(CollectiveRecord record, const Plan& plan);

// What products that round for themselves hold beside the plan's tensors: the operands of the
// largest, and the largest gradient that is kept for the next product. Of the ops of events.
double rounded_operand_bytes(const Scenario& scenario, const Plan& plan, const Program& program,
                             std::size_t begin, std::size_t end);

// Bytes of copies in fewer bits for each weight of the linear layers, less those of the weight
// itself where the copies are all there is.
double weight_copy_bytes(const Scenario& scenario, const Plan& plan);
// Read and written once a step to make them, for each weight.
double weight_rounding_bytes(const Scenario& scenario, const Plan& plan);
// What a block's kept activations shrink by where inputs of linear layers are kept rounded; below
// zero where a second copy is kept, of what the attention core keeps too. One micro-batch.
double saved_input_bytes(const Scenario& scenario, const Plan& plan, const Program& program,
                         std::size_t begin, std::size_t end);

}  // namespace tpsim
