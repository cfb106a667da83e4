#include "lowering/passes/unfused_kernels.h"

#include <algorithm>
#include <optional>

#include "core/program/op_dims.h"
#include "kernels/recurrence_records.h"
#include "lowering/passes/step_habits.h"

namespace tpsim {
namespace {

// Passes over the elements of an op's largest tensor: reads and writes in the plan's dtype (narrow)
// and in fp32 (wide). kept_*: saved elements per element, in the plan's dtype and in fp32.
struct Passes {
  double narrow = 0, wide = 0;
  std::int64_t launches = 1;
  double kept_narrow = 0, kept_wide = 0;
};

// Saved: the fp32 copy of the input instead of the input, and the normalized values.
constexpr Passes kRmsNormForward{4, 7, 8, 0, 1};
constexpr Passes kRmsNormBackward{8, 13, 14};
constexpr Passes kFusedNormBackward{3, 0, 1};  // without the residual's gradient
// torch.compile computes the gain's gradient in separate passes over both inputs. cuDNN's tables
// show twice the time of the fused kernel for 4096 to 8192 columns on H200, GB200 and GB300. The
// forward time is the same (NVIDIA/cudnn-frontend, norms).
constexpr Passes kCompiledNormBackward{6, 0, 2};
constexpr Passes kRotary{12.5, 0, 9};  // mean of forward (10) and backward (15)
// Cast to fp32, complex multiplication, cast back; for queries and for keys.
constexpr Passes kComplexRotary{2, 4, 6};
constexpr Passes kSwigluForward{5, 0, 2, 1, 0};  // saved: silu of the gate
constexpr Passes kSwigluBackward{13, 0, 4};
// Clamps of gate and up, separate from the compiled rest.
constexpr Passes kClampedForward{9, 0, 4};
constexpr Passes kClampedBackward{18, 0, 7};
// Megatron-Core multiplies the down projection's bias by each token's probability, in fp32 and
// expert by expert. The bias of the GEMMs before is free. Mean over both.
constexpr Passes kExpertBias{4, 0, 4};
constexpr Passes kExpertBiasGradient{3, 0, 6};
// Squared ReLU of experts times each token's probability in fp32, then a cast. Backward sums the
// probabilities' gradient over the width.
constexpr Passes kWeightedReluForward{4, 2, 3};
constexpr Passes kWeightedReluBackward{7, 4, 6};
constexpr Passes kBiasGelu{4, 0, 2};  // the sum with the bias is saved instead of the input
// PyTorch's ReLU saves its result, which the down projection saves too.
constexpr Passes kReluForward{0, 0, 1, -1, 0};
// GELU by the tanh formula: a cube, multiplications, sums, tanh. Under autocast the cube and all
// that follows from it are fp32, and the result is cast.
constexpr Passes kSavedGeluForward{18, 0, 8, 3, 0};
constexpr Passes kSavedGeluBackward{28, 0, 11};
constexpr Passes kAutocastGeluForward{6, 16, 10, 0, 3};
constexpr Passes kAutocastGeluBackward{8, 23, 15};
// The same in a function of autograd (BLOOM), without the cube; backward computes tanh again.
constexpr Passes kFunctionGeluForward{21, 0, 9};
constexpr Passes kFunctionGeluBackward{44, 0, 18};
constexpr Passes kSoftmaxForward{6, 4, 5, 0, 1};  // saved: fp32 probabilities
constexpr Passes kSoftmaxBackward{6, 5, 5};
// Megatron-LM's unfused softmax (forward_torch_softmax): cast to fp32, scale, mask, softmax, cast
// back. Saved: fp32 probabilities.
constexpr Passes kMegatronSoftmaxForward{2, 8, 5, 0, 1};
constexpr Passes kMegatronSoftmaxBackward{2, 9, 5};
constexpr Passes kBiasResidual{5, 0, 2};
// Megatron-Core's unfused router: scores, top-k, map and weights, counts for the auxiliary loss and
// the dispatcher; mostly over few elements.
constexpr Passes kRouteForward{0, 0, 20};
constexpr Passes kRouteBackward{0, 0, 14};
// Unfused permute sorts the indices and gathers the tokens. Unfused unpermute adds the tokens to a
// tensor of zeros.
constexpr Passes kUnfusedPermutation{4, 0, 8};
// transformers' grouped_mm_experts_forward: tokens are sorted by expert and gathered. Rows without
// an expert are set to zero before and after each of the two GEMMs. Results are multiplied by
// the router weights, gathered back and summed. Backward of a gather sorts the indices and adds
// rows. Masks, products with one factor per row and sums of gathered rows move half as many bytes
// per second as a copy (measured: launches.tsv of docs/validation/h100.md) and count twice.
constexpr Passes kTorchDispatch{6, 0, 20};
constexpr Passes kTorchCombine{15, 0, 8};
constexpr Passes kTorchCombineBackward{17, 0, 16};
constexpr Passes kTorchDispatchBackward{8, 0, 14};
constexpr Passes kTorchWeightGradient{4, 0, 2};
constexpr Passes kDropout{6.5, 0, 3};
constexpr Passes kUnscaledAdamW{
    1, 9, 2};  // fused, after the separate unscaling pass of StackSpec::scales_loss
// _VocabParallelCrossEntropy: subtract the maxima, exponentials, sums, division.
constexpr Passes kVocabParallelSums{0, 7, 4};
constexpr Passes kLogSoftmax{0, 3, 1};  // sums, then a result separate from the logits
// Gradient of log-softmax: fill, scatter, multiply.
constexpr Passes kCrossEntropyBackward{0, 4, 3};

// Autocast: norms read and write the residual stream in fp32. Every linear layer casts its own
// input, since autocast only caches casts of weights; q, k and v cast three times. torch.compile
// fuses the casts with the norm and casts once.
constexpr Passes kAutocastNormForward{1, 3, 2, 0, 0.5};
constexpr Passes kAutocastNormBackward{1, 4, 2};
constexpr Passes kCompiledAutocastNormForward{1, 1, 1, 1, 0.5};
constexpr Passes kCompiledAutocastNormBackward{1, 2, 2};
constexpr Passes kAutocastRmsNormForward{2.5, 9.5, 9, 1.5, 1.5};
constexpr Passes kAutocastRmsNormBackward{2.5, 18, 16};
constexpr Passes kAutocastResidual{1, 2, 1};  // narrow results, added to fp32
// Scale, mask, softmax and casts in one generated kernel.
constexpr Passes kCompiledSoftmaxForward{2, 2, 1, 0, 1};
// GELU by the tanh formula, whose cube autocast computes in fp32. Saved: an fp32 intermediate. The
// bytes follow from the first batches that do not fit (docs/decisions/master-weights.md).
constexpr Passes kCompiledAutocastGeluForward{0, 0, 1, 0, 1};
constexpr Passes kCompiledSoftmaxBackward{2, 2, 1};

template <class Kernel>
bool is_plain(Kernel kernel, const StackSpec& stack) {
  return kernel == Kernel::kTorch && !stack.parts.compile;
}

// Whether separate ops multiply the activation by the router weights. Megatron-Core fuses this
// multiplication into SwiGLU only.
bool weighs_apart(const OpRecord& op, const StackSpec& stack) {
  return stack.parts.activation_kernel == ActivationKernel::kFusedSwiglu &&
         stack.parts.expert_weighting == ExpertWeighting::kActivation &&
         op.label.part == ModelPart::kExpertActivation &&
         op.key.variant >> 1 == static_cast<int>(MlpKind::kReluSquared);
}

// Whether Megatron-LM's fused softmax does not support the op: it requires 16-bit scores and a
// multiple of four heads and sequences per rank (AttentionKernel::kMegatron).
bool outside_megatrons_softmax(const OpRecord& op, const SoftwareParts& parts) {
  const bool is_supported =
      dim_of(op.key, ScoreDim::kMatrices) % 4 == 0 && op.key.dtype != DType::kFloat32;
  return parts.attention_kernel == AttentionKernel::kMegatron && !is_supported;
}

// Whether all elementwise ops are plain, as in the modules of transformers.
bool has_plain_modules(const SoftwareParts& parts) {
  return parts.norm_kernel == KernelFusion::kTorch &&
         parts.activation_kernel == ActivationKernel::kTorch;
}

// Whether a separate op adds the bias of a linear layer. Megatron's layers leave it to the next op
// (skip_bias_add); torch.nn.Linear adds it in the GEMM.
bool adds_bias_apart(const OpRecord& op, const SoftwareParts& parts) {
  return (op.key.variant & 1) != 0 && !has_plain_modules(parts);
}

bool is_rms_norm(const OpRecord& op) {
  return static_cast<NormKind>(op.key.variant & 1) == NormKind::kRmsNorm;
}

// LayerNorm has no extra passes, because PyTorch's LayerNorm is a fused kernel.
Passes norm_passes(const OpRecord& op, const StackSpec& stack, const Passes& plain) {
  return is_plain(stack.parts.norm_kernel, stack) && is_rms_norm(op) ? plain : Passes{};
}

// Autograd adds the residual's gradient with a separate op: two reads and a write, instead of one
// read in the fused kernel. Its launch is included in the stack's host time per block.
Passes norm_backward_passes(const OpRecord& op, const StackSpec& stack) {
  Passes passes = norm_passes(op, stack, kRmsNormBackward);
  const bool has_residual = (op.key.variant & 2) != 0;
  if (stack.parts.compile && stack.parts.norm_kernel == KernelFusion::kTorch && is_rms_norm(op)) {
    passes = kCompiledNormBackward;
    if (has_residual) passes.narrow += 1;
    return passes;
  }
  if (!has_residual || !is_plain(stack.parts.residual_gradient, stack)) return passes;
  if (passes.narrow == 0) passes = kFusedNormBackward;
  passes.narrow += 3;
  return passes;
}

// GELU that the model's module writes as a formula. Nullopt if it is one kernel: in fused or
// compiled software, and for other activations.
std::optional<Passes> formula_passes(const OpRecord& op, const StackSpec& stack,
                                     ActivationOps activation) {
  const bool forward = op.key.kind == OpKind::kBiasGeluForward;
  const bool is_gelu = (forward || op.key.kind == OpKind::kBiasGeluBackward) &&
                       op.key.variant >> 1 == static_cast<int>(MlpKind::kGelu);
  const bool plain = has_plain_modules(stack.parts) && !stack.parts.compile;
  if (!is_gelu || !plain || activation == ActivationOps::kOneKernel) return std::nullopt;
  if (activation == ActivationOps::kFunctionOps) {
    return forward ? kFunctionGeluForward : kFunctionGeluBackward;
  }
  if (stack.parts.master_weights == MasterWeights::kAutocast && op.key.dtype != DType::kFloat32) {
    return forward ? kAutocastGeluForward : kAutocastGeluBackward;
  }
  return forward ? kSavedGeluForward : kSavedGeluBackward;
}

// Permute and unpermute of PermuteKernel::kTorch. Ops with router weights are the combination and
// its gradient.
Passes torch_permutation(const OpRecord& op) {
  const bool weighted = op.key.variant == 1;
  if (op.key.kind == OpKind::kPermuteTokens) {
    return weighted ? kTorchCombineBackward : kTorchDispatch;
  }
  return weighted ? kTorchCombine : kTorchDispatchBackward;
}

// Whether unfused attention is written out in PyTorch's ops. Software whose own kernel is
// FlashAttention and whose other modules are plain ops has no fused softmax.
bool writes_out_softmax(const SoftwareParts& parts) {
  if (parts.attention_kernel == AttentionKernel::kTorch) return true;
  const bool has_softmax_kernel = parts.attention_kernel == AttentionKernel::kMegatron ||
                                  parts.attention_kernel == AttentionKernel::kFusedSoftmax;
  return !has_softmax_kernel && has_plain_modules(parts);
}

// Nullopt if autocast does not change the op.
std::optional<Passes> autocast_passes(const OpRecord& op, const StackSpec& stack) {
  const bool is_autocast = stack.parts.master_weights == MasterWeights::kAutocast;
  if (!is_autocast || op.key.dtype == DType::kFloat32) return std::nullopt;
  const bool plain = is_plain(stack.parts.norm_kernel, stack) && is_rms_norm(op);
  const bool compile = stack.parts.compile;
  switch (op.key.kind) {
    case OpKind::kNormForward:
      if (plain) return kAutocastRmsNormForward;
      return compile ? kCompiledAutocastNormForward : kAutocastNormForward;
    case OpKind::kNormBackward: {
      Passes passes = plain     ? kAutocastRmsNormBackward
                      : compile ? kCompiledAutocastNormBackward
                                : kAutocastNormBackward;
      const bool has_residual = (op.key.variant & 2) != 0;
      if (has_residual) passes.wide += compile ? 1 : 3;
      return passes;
    }
    case OpKind::kBiasResidual: return kAutocastResidual;
    case OpKind::kBiasGeluForward:
      if (compile && has_plain_modules(stack.parts)) return kCompiledAutocastGeluForward;
      return std::nullopt;
    default: return std::nullopt;
  }
}

// Forward passes of the softmax in unfused attention.
const Passes& softmax_passes(const StackSpec& stack) {
  return stack.parts.compile ? kCompiledSoftmaxForward : kSoftmaxForward;
}

Passes passes_of(const OpRecord& op, const StackSpec& stack, ActivationOps activation) {
  if (const std::optional<Passes> autocast = autocast_passes(op, stack)) return *autocast;
  if (const auto formula = formula_passes(op, stack, activation)) return *formula;
  const SoftwareParts& parts = stack.parts;
  const bool fuses_swiglu = parts.activation_kernel == ActivationKernel::kFused ||
                            parts.activation_kernel == ActivationKernel::kFusedSwiglu;
  const bool plain_swiglu = !fuses_swiglu && !parts.compile;
  const bool part_fused = parts.activation_kernel == ActivationKernel::kFusedSwiglu &&
                          op.key.variant == static_cast<std::uint8_t>(MlpKind::kClampedSwiglu);
  const bool weighs_biases = parts.activation_kernel == ActivationKernel::kFusedSwiglu &&
                             op.label.part == ModelPart::kExperts;
  const bool plain_gelu = is_plain(parts.activation_kernel, stack);
  const bool plain_softmax = writes_out_softmax(parts);
  const bool eager_loss = parts.loss_head == LossHead::kEager ||
                          parts.loss_head == LossHead::kGathered ||
                          parts.loss_head == LossHead::kInModel;
  const bool is_relu = op.key.variant >> 1 == static_cast<int>(MlpKind::kRelu);
  const bool has_bias = adds_bias_apart(op, parts);
  const bool plain_head_norm =
      is_plain(parts.norm_kernel, stack);  // of q and k, almost always RMSNorm
  switch (op.key.kind) {
    case OpKind::kNormForward: return norm_passes(op, stack, kRmsNormForward);
    case OpKind::kNormBackward: return norm_backward_passes(op, stack);
    case OpKind::kHeadNormForward: return plain_head_norm ? kRmsNormForward : Passes{};
    case OpKind::kHeadNormBackward: return plain_head_norm ? kRmsNormBackward : Passes{};
    case OpKind::kColumnBias: return weighs_biases ? kExpertBias : Passes{};
    case OpKind::kColumnBiasGradient: return weighs_biases ? kExpertBiasGradient : Passes{};
    case OpKind::kRotary:
      if (parts.rotary_kernel == RotaryKernel::kTorchComplex) return kComplexRotary;
      return is_plain(parts.rotary_kernel, stack) ? kRotary : Passes{};
    case OpKind::kSwigluForward:
      if (part_fused) return kClampedForward;
      return plain_swiglu ? kSwigluForward : Passes{};
    case OpKind::kSwigluBackward:
      if (part_fused) return kClampedBackward;
      return plain_swiglu ? kSwigluBackward : Passes{};
    case OpKind::kBiasGeluForward:
      if (weighs_apart(op, stack)) return kWeightedReluForward;
      if (plain_gelu && has_bias) return kBiasGelu;
      return is_relu && has_plain_modules(parts) && !parts.compile ? kReluForward : Passes{};
    case OpKind::kBiasGeluBackward:
      return weighs_apart(op, stack) ? kWeightedReluBackward : Passes{};
    case OpKind::kSoftmaxForward:
      if (outside_megatrons_softmax(op, parts)) return kMegatronSoftmaxForward;
      return plain_softmax ? softmax_passes(stack) : Passes{};
    case OpKind::kSoftmaxBackward:
      if (outside_megatrons_softmax(op, parts)) return kMegatronSoftmaxBackward;
      if (plain_softmax && parts.compile) return kCompiledSoftmaxBackward;
      return plain_softmax ? kSoftmaxBackward : Passes{};
    case OpKind::kBiasResidual:
      return is_plain(parts.residual_kernel, stack) && has_bias ? kBiasResidual : Passes{};
    case OpKind::kDropoutForward:
      return is_plain(parts.residual_kernel, stack) ? kDropout : Passes{};
    case OpKind::kRouteForward:
      return is_plain(parts.router_kernel, stack) ? kRouteForward : Passes{};
    case OpKind::kRouteBackward:
      return is_plain(parts.router_kernel, stack) ? kRouteBackward : Passes{};
    case OpKind::kPermuteTokens:
    case OpKind::kUnpermuteTokens:
      if (parts.permute == PermuteKernel::kTorch) return torch_permutation(op);
      return parts.permute != PermuteKernel::kFused ? kUnfusedPermutation : Passes{};
    case OpKind::kRouteWeightGradient:
      return parts.permute == PermuteKernel::kTorch ? kTorchWeightGradient : Passes{};
    case OpKind::kScanForward:
    case OpKind::kScanBackward:
      return {0, 0, static_cast<std::int64_t>(scan_kernels(op.key).size())};
    case OpKind::kAdamW:
      if (updates_in_passes(stack)) {
        const UpdatePasses& unfused = updating_row(stack).unfused;
        return {unfused.narrow, unfused.wide, unfused.launches};
      }
      return stack.scales_loss && op.key.dtype == DType::kFloat16 ? kUnscaledAdamW : Passes{};
    case OpKind::kVocabSums:
      if (eager_loss) return kLogSoftmax;
      return parts.loss_head == LossHead::kVocabParallel ? kVocabParallelSums : Passes{};
    case OpKind::kCrossEntropyBackward: return eager_loss ? kCrossEntropyBackward : Passes{};
    default: return {};  // GEMMs, copies, sums: the same kernels everywhere
  }
}

// Elements of the tensor that the passes run over.
double passed_elements(const OpKey& key) {
  switch (key.kind) {
    case OpKind::kAdamW: return product_of(key, ElementDim::kElements);
    case OpKind::kRotary:
    case OpKind::kHeadNormForward:
    case OpKind::kHeadNormBackward:
      return product_of(key, HeadDim::kRows, HeadDim::kHeads, HeadDim::kWidth);
    case OpKind::kSoftmaxForward:
    case OpKind::kSoftmaxBackward:
      return product_of(key, ScoreDim::kMatrices, ScoreDim::kQueries, ScoreDim::kKeys);
    case OpKind::kPermuteTokens:
    case OpKind::kUnpermuteTokens:
    case OpKind::kRouteWeightGradient: return slot_elements(key);
    default:
      return has_dims(key.kind, RowDim()) ? product_of(key, RowDim::kRows, RowDim::kCols) : 0;
  }
}

}  // namespace

bool updates_in_passes(const StackSpec& stack) {
  const OptimizerRow& row = updating_row(stack);
  return row.unfused.launches > 0 &&
         (row.is_never_fused || is_plain(stack.parts.optimizer_kernel, stack));
}

UnfusedKernels unfused_kernels_of(const OpRecord& op, const StackSpec& stack,
                                  ActivationOps activation) {
  const Passes passes = passes_of(op, stack, activation);
  const double width = static_cast<double>(size_of(op.key.dtype));
  const double elements = passed_elements(op.key);
  const double bytes = elements * (passes.narrow * width + passes.wide * 4);
  const Bytes kept(elements * (passes.kept_narrow * width + passes.kept_wide * 4));
  if (bytes == 0 || op.bytes <= 0) return {1, passes.launches, kept};
  return {std::max(1.0, bytes / op.bytes), passes.launches, kept};
}

}  // namespace tpsim
