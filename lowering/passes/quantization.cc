#include "lowering/passes/quantization.h"

#include <fmt/format.h>

#include <cmath>

#include "core/program/op_dims.h"
#include "costs/matmul_model.h"

namespace tpsim {
namespace {

bool is_by_tensor(Precision recipe) {
  return recipe == Precision::kFp8 || recipe == Precision::kFp8Current;
}

// Returns whether one 8-bit copy serves both GEMM orientations. Hopper multiplies 8-bit operands in
// one layout only; devices with MXFP8 (Blackwell) in any.
bool takes_any_orientation(const DeviceFacts& device, Precision recipe) {
  return is_by_tensor(recipe) && device.mxfp8_peak > FlopsPerSecond();
}

// Returns the number of quantized copies of a weight: row-wise for forward, column-wise for dgrad.
double copies_of_weight(const Scenario& scenario, const Plan& plan) {
  const Precision recipe = recipe_of(scenario.stack, plan);
  const bool one = takes_any_orientation(scenario.profile.device, recipe) ||
                   recipe == Precision::kFp8Block;  // 128 x 128 blocks serve both orientations
  return one ? 1 : 2;
}

// Returns the GEMM with operands of this dtype. Its layout is always that of y = x W^T; GEMMs with
// other layouts read transposed copies.
OpRecord with_operands(const OpRecord& product, DType operands) {
  OpRecord narrow = product;
  narrow.key.dtype = operands;
  narrow.key.variant =
      static_cast<std::uint8_t>((product.key.variant & ~kGemmLayout) | kTransposeB);
  const bool sums_rows = (product.key.variant & kTransposeA) != 0;
  if (is_grouped_product(product) && sums_rows) narrow.key.variant |= kSumsRows;
  return narrow;
}

}  // namespace

DType operands_of(const StackSpec& stack, const Plan& plan) {
  Plan with_recipe = plan;
  with_recipe.precision = recipe_of(stack, plan);
  return product_dtype(with_recipe);
}

bool keeps_quantized_weights(const StackSpec& stack, const Plan& plan) {
  return recipe_of(stack, plan) != Precision::kNone && !stack.requantizes_in_backward &&
         !stack.quantizes_inside_gemm;
}

bool is_linear_layer(const OpRecord& op) {
  const ModelPart part = op.label.part;
  const bool is_in_block = is_linear(part);
  return op.key.kind == OpKind::kMatmul && is_in_block;
}

Precision recipe_of(const StackSpec& stack, const Plan& plan) {
  if (plan.precision != Precision::kNone || !stack.fp8_products) return plan.precision;
  return Precision::kFp8;
}

// With GEMMs that quantize internally, scales are updated once per step and not after chunks.
bool exchanges_scales(const StackSpec& stack, const Plan& plan) {
  return recipe_of(stack, plan) == Precision::kFp8 && !stack.quantizes_inside_gemm;
}

Status check_precision(const DeviceFacts& device, Precision precision) {
  Plan plan;
  plan.precision = precision;
  const DType operands = product_dtype(plan);
  if (!is_narrow(operands) || matrix_peak(device, operands) > FlopsPerSecond()) return Ok{};
  return bad_input(fmt::format("precision {} is not possible: {} has no {} GEMMs",
                               name_of(precision), device.name, name_of(operands)),
                   std::string(option_of(Setting::kPrecision)),
                   fmt::format("the GPU supports {}", narrow_types_text(device)));
}

// cuBLASLt has GEMMs with kFp8Block scales only for compute capability 9.0; devices with MXFP8 are
// newer.
Status check_precision(const Scenario& scenario, Precision precision) {
  const DeviceFacts& device = scenario.profile.device;
  TPSIM_TRY_STATUS(check_precision(device, precision));
  const bool lacks = scenario.stack.quantizes_inside_gemm && precision == Precision::kFp8Block &&
                     device.mxfp8_peak > FlopsPerSecond();
  if (!lacks) return Ok{};
  return bad_input(
      fmt::format("precision {} is not possible: stack {} uses cuBLASLt, which supports it for "
                  "compute capability 9.0 only; {} is newer",
                  name_of(precision), scenario.stack.name, device.name),
      std::string(option_of(Setting::kPrecision)), "choose --precision mxfp8");
}

QuantizedOperands::QuantizedOperands(const Scenario& scenario, const Plan& plan)
    : recipe_(recipe_of(scenario.stack, plan)),
      operands_(operands_of(scenario.stack, plan)),
      any_orientation_(takes_any_orientation(scenario.profile.device, recipe_)),
      requantizes_(scenario.stack.requantizes_in_backward),
      gathers_in_8_bits_(plan.zero == 3 && gathers_in_8_bits(plan)),
      in_products_(scenario.stack.quantizes_inside_gemm),
      gathered_parts_(plan.sequence_parallel ? static_cast<double>(plan.degrees.tp) : 1) {}

// Returns the bytes read and written to quantize the GEMM's first operand, per element of the
// operand before sharding.
double QuantizedOperands::bytes_per_input(const OpRecord& product) const {
  const double narrow = bytes_per_element(operands_);
  const double part = is_gathered_ ? 1 / gathered_parts_ : 1;
  if (!is_by_tensor(recipe_)) return part * (2 + 2 * narrow);
  const bool is_written =
      !requantizes_ && from_norm_ && recipe_ == Precision::kFp8 && is_forward(product);
  const double greatest = recipe_ == Precision::kFp8Current ? 2 : 0;
  const double rows = is_written ? 0 : part * (greatest + 2 + narrow);
  if (any_orientation_) return rows;
  return rows + (is_written || is_gathered_ ? 2 * narrow : narrow);
}

// Returns the bytes read and written to quantize the second operand: weights in forward and dgrad,
// inputs in wgrad.
double QuantizedOperands::requantized_bytes(const OpRecord& product) const {
  const double greatest = recipe_ == Precision::kFp8Current ? 2 : 0;
  return (greatest + 2 + bytes_per_element(operands_)) * others_of(product);
}

// Adds the quantization passes that kernels/cuda/linear/low_precision.cu runs for the GEMM.
void QuantizedOperands::add_passes_in_product(std::vector<OpRecord>& ops,
                                              const OpRecord& product) const {
  const double narrow = bytes_per_element(operands_), inputs = inputs_of(product);
  const double read = recipe_ == Precision::kFp8Current ? 4 : 2;
  const bool is_first_of_pair = is_pair(product) && !is_forward(product);
  if (!is_weight_gradient(product) || !is_pair(product)) {
    const double written = is_first_of_pair ? 2 * narrow : narrow;
    add_pass(ops, product, QuantizationPass::kQuantize, inputs, inputs * (read + written));
  }
  add_pass(ops, product, QuantizationPass::kQuantize, others_of(product),
           requantized_bytes(product));
}

// Adds the passes over the first operand. NVFP4 quantizes columns from 16 bits, because of the
// Hadamard transform.
void QuantizedOperands::add_input_passes(std::vector<OpRecord>& ops,
                                         const OpRecord& product) const {
  const double elements = inputs_of(product);
  if (recipe_ != Precision::kNvFp4) {
    add_pass(ops, product, QuantizationPass::kQuantize, elements,
             elements * bytes_per_input(product));
    return;
  }
  const double own = (is_gathered_ ? 1 / gathered_parts_ : 1) * elements;
  const double traffic = 2 + bytes_per_element(operands_);
  const bool is_activation = is_forward(product);
  add_pass(ops, product, QuantizationPass::kAmax, own, 2 * own);
  add_pass(ops, product,
           is_activation ? QuantizationPass::kRows : QuantizationPass::kRowsStochastic, own,
           traffic * own);
  add_pass(ops, product,
           is_activation ? QuantizationPass::kHadamard : QuantizationPass::kHadamardStochastic, own,
           traffic * own);
}

void QuantizedOperands::add_pass(std::vector<OpRecord>& ops, const OpRecord& product,
                                 QuantizationPass pass, double elements, double bytes) const {
  if (bytes <= 0) return;
  // The key stores 64 x bytes per element, so that keys of different passes differ.
  constexpr double kOf = 64;
  ops.push_back({.key = {OpKind::kCast,
                         DType::kBFloat16,
                         static_cast<std::uint8_t>(operands_),
                         {static_cast<std::int64_t>(elements),
                          static_cast<std::int64_t>(std::llround(kOf * bytes / elements)),
                          static_cast<std::int64_t>(pass)}},
                 .bytes = bytes,
                 .label = product.label});
}

std::vector<OpRecord> QuantizedOperands::ops_for(const OpRecord& op) {
  const bool is_product = recipe_ != Precision::kNone && is_linear_layer(op);
  std::vector<OpRecord> ops;
  if (is_product && in_products_) {
    add_passes_in_product(ops, op);
  } else if (is_product && !is_weight_gradient(op)) {
    if (!is_forward(op) || quantized_.is_new(op)) add_input_passes(ops, op);
  }
  // A weight that was gathered in 8 bits needs no cast.
  const bool is_cast = !gathers_in_8_bits_ || (is_product && is_weight_gradient(op));
  if (is_product && requantizes_ && is_cast) {
    add_pass(ops, op, QuantizationPass::kQuantize, inputs_of(op), requantized_bytes(op));
  }
  const ModelPart part = op.label.part;
  const bool is_norm = part == ModelPart::kNorm || part == ModelPart::kAttentionNorm;
  if (!is_norm) is_gathered_ = is_gathered_ && is_product;
  from_norm_ = is_norm;
  ops.push_back(is_product ? with_operands(op, operands_) : op);
  if (is_product && is_by_tensor(recipe_) && (in_products_ || !is_forward(op))) {
    ops.back().key.variant |= static_cast<std::uint8_t>(kSplitSums);
  }
  if (is_product && is_weight_gradient(op)) is_gathered_ = false;
  return ops;
}

CollectiveRecord QuantizedOperands::sent(const CollectiveRecord& record) {
  if (recipe_ == Precision::kNone || in_products_ || !is_tensor_gather(record)) return record;
  is_gathered_ = true;
  CollectiveRecord narrow = record;
  narrow.bytes = static_cast<std::int64_t>(static_cast<double>(record.bytes) / 2 *
                                           bytes_per_element(operands_));
  return narrow;
}

bool gathers_in_8_bits(const Plan& plan) {
  return plan.fp8_param_gather && plan.precision != Precision::kMxFp8;
}

double weight_copy_bytes(const Scenario& scenario, const Plan& plan) {
  if (!keeps_quantized_weights(scenario.stack, plan)) return 0;
  const double copies =
      copies_of_weight(scenario, plan) * bytes_per_element(operands_of(scenario.stack, plan));
  return plan.fp8_param_gather ? copies - static_cast<double>(size_of(plan.dtype)) : copies;
}

double weight_quantization_bytes(const Scenario& scenario, const Plan& plan) {
  if (!keeps_quantized_weights(scenario.stack, plan) || plan.fp8_param_gather) return 0;
  const Precision recipe = recipe_of(scenario.stack, plan);
  const bool has_own_scale = recipe == Precision::kFp8Current || recipe == Precision::kNvFp4;
  return (has_own_scale ? 2 : 1) * static_cast<double>(size_of(plan.dtype)) +
         weight_copy_bytes(scenario, plan);
}

}  // namespace tpsim
