// Adapters beside frozen weights: storage of the frozen weights, their dequantization, and the ops
// of PyTorch around the adapters' GEMMs.
#include "reference_model/layers/adapters.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/software/finetune.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"
#include "lowering/passes/step_habits.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {
namespace {

constexpr Label kDequantize{ModelPart::kAdapter, "base.dequantize"};
constexpr Label kAdapterPass{ModelPart::kAdapter, "adapter.passes"};

// Scales the gathers of frozen weights and their buffers.
void narrow_gathers(LoweredLayer& layer, double ratio) {
  const auto scaled = [&](std::int64_t bytes) {
    return std::llround(ratio * static_cast<double>(bytes));
  };
  for (LoweredCollective& record : layer.collectives) {
    if (record.label.text == std::string_view(kGatherOfFrozen)) record.bytes = scaled(record.bytes);
    if (record.label.text == std::string_view(kUploadFrozen)) record.copied *= ratio;
  }
  for (LoweredAllocation& made : layer.allocations) {
    if (holds_frozen_weights(made)) made.bytes = scaled(made.bytes);
  }
}

// Returns the number of matrices that the traced GEMM joins: queries, keys and values, or gate and
// up.
double joined_matrices(const LoweredOp& op, const LayerInputs& inputs) {
  const ModelSpec& model = inputs.block;
  const std::int64_t tp = inputs.plan.degrees.tp;
  const std::int64_t out = dim_of(op.key, is_forward(op) ? GemmDim::kN : GemmDim::kK);
  if (op.label.part == ModelPart::kAttentionLinear && !model.fused_qkv) {
    return out * tp == query_width(model) + projected_kv_width(model) ? 3 : 1;
  }
  const std::int64_t ffn =
      model.experts.shared_ffn > 0 ? model.experts.shared_ffn : model.ffn_hidden;
  return op.label.part == ModelPart::kMlpLinear && is_gated(model.mlp) && out * tp == 2 * ffn ? 2
                                                                                              : 1;
}

// The kind of an adapter's GEMM. `rows` are tokens.
enum class AdapterGemm : std::uint8_t { kDown, kUp, kDownSlope, kInputGradient, kWeightGradient };
AdapterGemm kind_of(const LoweredOp& op, std::int64_t rank) {
  if (is_weight_gradient(op)) return AdapterGemm::kWeightGradient;
  const bool to_rank = dim_of(op.key, GemmDim::kN) == rank;
  if (is_forward(op)) return to_rank ? AdapterGemm::kDown : AdapterGemm::kUp;
  return to_rank ? AdapterGemm::kDownSlope : AdapterGemm::kInputGradient;
}

// A pass over memory beside a GEMM: bytes per element of the layer's input or output, and kernels.
struct AdapterPasses {
  double bytes = 0, kernels = 0;
};

// peft/tuners/lora/layer.py, Linear.forward(): result + lora_B(lora_A(dropout(x))) * scaling. The
// traced GEMM of B reads and writes the layer's output; the framework's writes its own, which is
// scaled and added. In backward, autograd scales the output's gradient and adds input gradients.
// With fp32 adapters, which pure 16-bit training does not have, x is cast to fp32 and, by autocast,
// to 16 bits again, like each weight; backward casts gradients alike.
AdapterPasses passes_of(AdapterGemm gemm, double width, bool casts) {
  switch (gemm) {
    case AdapterGemm::kDown: return casts ? AdapterPasses{2 * (width + 4), 3} : AdapterPasses{};
    case AdapterGemm::kUp: return {4 * width, casts ? 3.0 : 2.0};
    case AdapterGemm::kDownSlope: return {2 * width, 1};
    case AdapterGemm::kInputGradient:
      return casts ? AdapterPasses{2 * width + 2 * (width + 4), 3} : AdapterPasses{2 * width, 1};
    case AdapterGemm::kWeightGradient: return {0, casts ? 1.0 : 0.0};
  }
  return {};
}

// Kernels that dequantize a weight, and bytes that they read and write per weight beside the stored
// and the dequantized weight.
struct Dequantization {
  double kernels = 1, bytes = 0;
};

// bitsandbytes/autograd/_functions.py, MatMul4Bit: one kernel; double quantization adds a kernel
// for the scales and one for their offset. auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py: the
// backward of 4-bit kernels is missing, so training unpacks weights and zero points with PyTorch's
// ops: a shift in int32, a cast to int8, a mask, a subtraction, a product with the scale, and a
// cast.
Dequantization dequantization_of(const Finetune& finetune, double width) {
  switch (finetune.base) {
    case BaseDtype::kPlan: return {0, 0};
    case BaseDtype::kNf4: return {finetune.double_quantization ? 3.0 : 1.0, 0};
    case BaseDtype::kInt4:
      if (finetune.kernel == LoraKernel::kFused) return {};
      return {10, (4 + 5) + 2 + 2 + (1 + width) + width};
    case BaseDtype::kInt8: return {};
  }
  return {};
}

}  // namespace

bool holds_frozen_weights(const LoweredAllocation& made) {
  return std::string_view(made.label) == kFrozenWeights;
}

void store_frozen_weights(LoweredLayer& layer, const StepEndInputs& inputs) {
  const Finetune& finetune = finetune_of(inputs.scenario.stack);
  if (!finetune.freezes()) return;
  const DType dtype = inputs.plan.dtype;
  const bool is_quantized = finetune.quantizes_base() && layer.kind == LayerKind::kBlock;
  const bool is_wide = keeps_fp32_weights_alone(inputs.scenario.stack, dtype);
  const double bytes = is_quantized
                           ? base_weight_bytes(finetune, dtype)
                           : static_cast<double>(size_of(is_wide ? DType::kFloat32 : dtype));
  narrow_gathers(layer, bytes / static_cast<double>(size_of(dtype)));
}

void narrow_frozen_gathers(LoweredLayer& layer, const LayerInputs& inputs) {
  const Finetune& finetune = finetune_of(inputs.scenario.stack);
  if (!finetune.quantizes_base() || layer.kind != LayerKind::kBlock) return;
  const DType dtype = inputs.plan.dtype;
  narrow_gathers(layer, base_weight_bytes(finetune, dtype) / static_cast<double>(size_of(dtype)));
}

// Forward and backward dequantize the weight for one GEMM each.
void dequantize_weights(LoweredLayer& layer, const LayerInputs& inputs) {
  const Finetune& finetune = finetune_of(inputs.scenario.stack);
  if (!finetune.quantizes_base() || layer.kind != LayerKind::kBlock) return;
  const DType dtype = inputs.plan.dtype;
  const double stored = base_weight_bytes(finetune, dtype);
  const auto width = static_cast<double>(size_of(dtype));
  const Dequantization work = dequantization_of(finetune, width);
  for (const Phase phase : {Phase::kForward, Phase::kRecompute, Phase::kBackward}) {
    double largest = 0;
    rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
      if (event.kind == LoweredEvent::Kind::kOp) {
        const LoweredOp& op = layer.ops[event.index];
        const bool is_of_adapter = op.label.text == std::string_view(kExpertAdapters);
        if (is_linear_layer(op) && !is_of_adapter && !is_weight_gradient(op)) {
          const double weights = op.repeats * others_of(op), matrices = joined_matrices(op, inputs);
          largest = std::max(largest, weights / matrices);
          events.push_back(
              added(layer, LoweredCopy{.label = kDequantize,
                                       .moved = Bytes((stored + width + work.bytes) * weights),
                                       .kernels = work.kernels * matrices,
                                       .adds_latency = true}));
        }
      }
      events.push_back(event);
    });
    hold(layer, {phase, Moment::Edge::kStart}, {phase, Moment::Edge::kEnd}, width * largest,
         "dequantized weight", MemoryCategory::kWorkspace);
  }
}

void unfuse_adapters(LoweredLayer& layer, const LayerInputs& inputs) {
  const Finetune& finetune = finetune_of(inputs.scenario.stack);
  const StackSpec& stack = inputs.scenario.stack;
  if (!finetune.adapts || finetune.kernel == LoraKernel::kFused || stack.parts.compile) return;
  const DType dtype = inputs.plan.dtype;
  const bool casts = finetune.dtype == LoraDtype::kFloat32 && dtype != DType::kFloat32 &&
                     updates_fp32_weights(stack.parts, dtype);
  const auto width = static_cast<double>(size_of(dtype));
  for (const Phase phase : {Phase::kForward, Phase::kRecompute, Phase::kBackward}) {
    const bool keeps = keeps_saved_tensors(layer, inputs.plan, phase);
    rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
      events.push_back(event);
      if (event.kind != LoweredEvent::Kind::kOp) return;
      const LoweredOp op = layer.ops[event.index];
      if (op.label.part != ModelPart::kAdapter || op.key.kind != OpKind::kMatmul) return;
      const AdapterGemm gemm = kind_of(op, finetune.rank);
      const AdapterPasses passes = passes_of(gemm, width, casts);
      const bool of_input = gemm == AdapterGemm::kDown || gemm == AdapterGemm::kDownSlope;
      const double elements =
          product_of(op.key, GemmDim::kBatch, GemmDim::kM, of_input ? GemmDim::kK : GemmDim::kN);
      if (passes.kernels == 0) return;
      events.push_back(added(layer, LoweredCopy{.label = kAdapterPass,
                                                .moved = Bytes(passes.bytes * elements),
                                                .kernels = passes.kernels,
                                                .adds_latency = true}));
      // Each adapter saves its own cast of the input.
      if (gemm == AdapterGemm::kDown && casts && keeps) {
        hold(layer, events, kBackwardEnd, width * elements, "adapter.cast_input");
      }
    });
  }
}

// The trace of such a block has no backward. Other passes may have added work to it, and memory
// that forward holds until then.
void end_in_forward(LoweredLayer& layer, const LayerInputs& inputs) {
  if (layer.kind != LayerKind::kBlock || inputs.block.has_backward) return;
  std::vector<LoweredEvent>& forward = layer.phase(Phase::kForward).events;
  const auto is_of_forward = [&](std::uint32_t index) {
    return std::any_of(forward.begin(), forward.end(), [&](const LoweredEvent& event) {
      return event.kind == LoweredEvent::Kind::kAllocate && event.index == index;
    });
  };
  for (const Phase phase : {Phase::kRecompute, Phase::kBackward}) {
    for (const LoweredEvent& event : std::exchange(layer.phase(phase), {}).events) {
      const bool frees = event.kind == LoweredEvent::Kind::kFree;
      if (frees && is_of_forward(event.index)) forward.push_back(event);
    }
  }
}

}  // namespace tpsim
