// Linear layers with 8- or 4-bit GEMMs, following Transformer Engine's recipes (core/plan/plan.h,
// Precision): the GEMM, and the passes that quantize its operands.
//
// An operand is quantized row-wise for the forward or dgrad GEMM, and column-wise for wgrad. The
// column-wise copy is obtained in one of these ways:
// - Per-tensor fp8 on devices with MXFP8: no copy, since the matrix units take any orientation.
// - Per-tensor fp8 on other devices: written in the same pass, or transposed from the row-wise copy
//   if this copy was written by a norm or gathered in 8 bits.
// - Block scales, which differ by orientation: quantized again from 16 bits.
// A norm writes its output in 8 bits if the scale is known in advance (kFp8). Sequence-parallel
// ranks quantize their shard before the gather. Recipes with a scale from the tensor itself
// (kFp8Current, and the outer scale of kNvFp4) need an amax pass.
//
// NVFP4 applies 16 x 16 Hadamard transforms to wgrad operands. Columns are therefore quantized from
// 16 bits in a separate pass. Gradients are rounded stochastically. Weights have one scale per 16 x
// 16 block. Memory traffic hides the transforms (32 FLOPs per element, on the matrix units) and the
// random numbers (32 bits per four elements).
//
// Weights are quantized once per step unless StackSpec::requantizes_in_backward is set. With
// StackSpec::quantizes_inside_gemm, the passes are those of kernels/cuda/linear/low_precision.cu:
// one pass per operand, two for scales of the tensor itself, and one for a gradient's dgrad and
// wgrad together.
//
// Dgrad and wgrad of kFp8 and kFp8Current promote partial sums outside the matrix units
// (kSplitSums; Transformer Engine's use_split_accumulator, torchao's use_fast_accum). Not priced:
// the all-reduce of the amax values of kFp8Current and kNvFp4 (a few bytes per tensor).
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"
#include "lowering/passes/linear_gemm.h"

namespace tpsim {

// Returns whether the op is the GEMM of a block's linear layer. GEMMs of attention cores, the head
// and the router stay in 16 bits.
bool is_linear_layer(const OpRecord& op);

// Returns the recipe of a plan's linear layers: the plan's, or kFp8 if the software always uses fp8
// GEMMs.
Precision recipe_of(const StackSpec& stack, const Plan& plan);

// Returns the dtype of the operands of linear layers.
DType operands_of(const StackSpec& stack, const Plan& plan);

// Returns whether quantized operands are kept between GEMMs. Otherwise only 16-bit tensors are
// kept, and every GEMM quantizes its operands.
bool keeps_quantized_weights(const StackSpec& stack, const Plan& plan);

// Returns whether the ranks of a stage synchronize delayed scales after every chunk.
bool exchanges_scales(const StackSpec& stack, const Plan& plan);

// Error with the supported dtypes if the device's matrix units do not support the recipe's dtype.
Status check_precision(const DeviceFacts& device, Precision precision);
// Also an error if the stack's GEMM library does not support the recipe on this device.
Status check_precision(const Scenario& scenario, Precision precision);

// A pass over an operand that a recipe adds to the GEMM.
enum class QuantizationPass : std::uint8_t {
  kNone,
  kQuantize,            // in one pass
  kAmax,                // amax of the tensor for its scale; serves both orientations of NVFP4
  kRows,                // row-wise quantization
  kRowsStochastic,      // kRows for gradients, with stochastic rounding
  kHadamard,            // 16 x 16 Hadamard transform and column-wise quantization
  kHadamardStochastic,  // kHadamard for gradients, with stochastic rounding
};

// Replaces the ops of a block by those that the recipe runs. Use one object per phase, and pass all
// events in order.
class QuantizedOperands {
 public:
  QuantizedOperands(const Scenario& scenario, const Plan& plan);

  // Returns the ops that replace `op`: `op` itself, or quantization passes and the GEMM.
  std::vector<OpRecord> ops_for(const OpRecord& op);
  // Returns the collective with the bytes that it sends with this recipe.
  CollectiveRecord sent(const CollectiveRecord& record);

 private:
  double bytes_per_input(const OpRecord& product) const;
  double requantized_bytes(const OpRecord& product) const;
  void add_passes_in_product(std::vector<OpRecord>& ops, const OpRecord& product) const;
  void add_input_passes(std::vector<OpRecord>& ops, const OpRecord& product) const;
  void add_pass(std::vector<OpRecord>& ops, const OpRecord& product, QuantizationPass pass,
                double elements, double bytes) const;

  Precision recipe_;
  DType operands_;
  bool any_orientation_ = false;
  bool requantizes_ = false;
  bool gathers_in_8_bits_ = false;
  bool in_products_ = false;
  double gathered_parts_ = 1;  // number of ranks that gather one operand
  bool from_norm_ = false;
  bool is_gathered_ = false;
  QuantizedInputs quantized_;
};

// Returns whether the linear layers' weights are gathered in 8 bits. MXFP8 weights are gathered in
// 16 bits, because both of their orientations are quantized from 16 bits.
bool gathers_in_8_bits(const Plan& plan);

// Returns the bytes of quantized copies per weight of the linear layers. With fp8_param_gather, the
// 16-bit weight does not exist, and its bytes are subtracted.
double weight_copy_bytes(const Scenario& scenario, const Plan& plan);
// Returns the bytes read and written per weight and step to make these copies.
double weight_quantization_bytes(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim
