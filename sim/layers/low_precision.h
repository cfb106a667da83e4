// Linear layers with 8- or 4-bit GEMMs, following Transformer Engine's recipes (core/plan/plan.h,
// Precision): the GEMM, and the passes that quantize its operands.
//
// An operand is quantized row-wise for its own GEMM and column-wise for wgrad. The column-wise copy
// is one of:
// - the row-wise copy itself, if the matrix units take per-tensor fp8 in any orientation (devices
//   with MXFP8);
// - made in the same pass, or transposed from the row-wise copy if that was written or gathered in
//   8 bits;
// - quantized again from 16 bits, for block scales, which differ by orientation.
// A norm writes its output in 8 bits if the scale is known in advance (kFp8). Sequence-parallel
// ranks quantize their shard before the gather. Scales of the tensor itself (kFp8Current, and the
// outer scale of kNvFp4) need an amax pass.
//
// NVFP4 applies 16 x 16 Hadamard transforms to wgrad operands. Columns are therefore quantized from
// 16 bits in a separate pass; gradients are rounded stochastically. Weights have a scale per 16 x
// 16. The transforms (32 FLOPs per element, on the matrix units) and random numbers (32 bits per
// four elements) are hidden behind memory traffic.
//
// Weights are quantized once per step unless StackSpec::requantizes_in_backward is set. With
// StackSpec::quantizes_inside_gemm, the passes are those of kernels/cuda/linear/low_precision.cu:
// one pass per operand, two for scales of the tensor itself, and one for a gradient's dgrad and
// wgrad together.
//
// Dgrad and wgrad of kFp8 and kFp8Current promote partial sums outside the matrix units
// (kSplitSums; Transformer Engine's use_split_accumulator, torchao's use_fast_accum). Not priced:
// the all-reduce of amax values (a few bytes per tensor).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Whether the op is a linear layer of a block. Attention cores, the head and the router stay in 16
// bits.
bool is_linear_layer(const OpRecord& op);

// The recipe of a plan's linear layers in this software.
Precision recipe_of(const StackSpec& stack, const Plan& plan);

// Whether the ranks of a stage synchronize the delayed scales of all tensors after every chunk.
bool exchanges_scales(const StackSpec& stack, const Plan& plan);

// The same GEMM with narrow operands. The layout is always that of y = x W^T: other layouts read
// transposed copies.
OpRecord with_operands(const OpRecord& product, DType operands);

// Error with the supported dtypes if the device's matrix units do not support the recipe.
Status check_precision(const DeviceFacts& device, Precision precision);
// Also an error if the stack's library lacks these GEMMs for the device.
Status check_precision(const Scenario& scenario, Precision precision);

// A pass that a recipe runs over an operand, besides the GEMM.
enum class RoundingPass : std::uint8_t {
  kNone,
  kRounding,            // quantization in one pass
  kGreatest,            // amax for the scale of the tensor, for both orientations of NVFP4
  kRows,                // row-wise quantization
  kRowsStochastic,      // the same for gradients, with stochastic rounding
  kHadamard,            // 16 x 16 Hadamard transform and column-wise quantization
  kHadamardStochastic,  // the same for gradients, with stochastic rounding
};
// Name of the pass, "rounded to nvfp4 by rows"; empty for other ops.
std::string name_of_pass(const OpRecord& op);
// Describes the recipe's passes in a report; empty for none.
std::string_view roundings_of(Precision recipe);

// Follows the events of one phase of a block and returns the ops that the device runs.
class RoundedOperands {
 public:
  RoundedOperands(const Scenario& scenario, const Plan& plan);

  // Returns the ops that replace `op`: `op` itself, or quantization passes and the GEMM.
  std::vector<OpRecord> ops_for(const OpRecord& op);
  // Returns the collective with the bytes that are sent.
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
  const char* last_input_ = nullptr;  // the layer whose input was quantized last in forward
};

// A collective of the step's end with the bytes that are sent. 8-bit weights are gathered in 8
// bits; MXFP8 weights in 16 bits, since both orientations are made from them.
CollectiveRecord as_gathered(CollectiveRecord record, const Plan& plan);

// Buffers of GEMMs that quantize internally: the operands of the largest GEMM, and the largest
// gradient kept from dgrad to wgrad. For the ops of events [begin, end).
double rounded_operand_bytes(const Scenario& scenario, const Plan& plan, const Program& program,
                             std::size_t begin, std::size_t end);

// Bytes of quantized copies per weight of the linear layers, minus the weight itself if only copies
// are kept.
double weight_copy_bytes(const Scenario& scenario, const Plan& plan);
// Bytes read and written per weight and step to make the copies.
double weight_rounding_bytes(const Scenario& scenario, const Plan& plan);
// Bytes saved in a block's saved activations by keeping quantized inputs of linear layers, for one
// micro-batch. Negative if a second copy is kept of a tensor that the attention core saves too.
double saved_input_bytes(const Scenario& scenario, const Plan& plan, const Program& program,
                         std::size_t begin, std::size_t end);

}  // namespace tpsim
