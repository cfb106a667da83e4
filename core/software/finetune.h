// Weights that a training run updates: all of them, those of chosen layers and modules, or low-rank
// adapters beside frozen weights (LoRA, Hu et al. 2021, arXiv 2106.09685; QLoRA, Dettmers et al.
// 2023, arXiv 2305.14314).
//
// An adapter of a linear layer with weight [out, in] adds scale x B (A x) to its output: A [rank,
// in], B [out, rank].
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/enum_words.h"
#include "core/model/model_spec.h"

namespace tpsim {

// kQlora: LoRA with frozen weights in fewer bits. kFreeze: a part of the model's own weights.
enum class FinetuneMethod : std::uint8_t { kFull, kLora, kQlora, kFreeze };
template <>
inline constexpr auto kEnumNames<FinetuneMethod> = words<4>("full lora qlora freeze");

// kRankStabilized: alpha / sqrt(rank) (Kalajdzievski 2023, arXiv 2312.03732).
enum class LoraScaling : std::uint8_t { kByRank, kRankStabilized };
template <>
inline constexpr auto kEnumNames<LoraScaling> = words<2>("plain rslora");

// Dtype of adapters, their gradients and their optimizer state. kFloat32: fp32 weights, whose GEMMs
// autocast runs in the plan's dtype (peft's autocast_adapter_dtype).
enum class LoraDtype : std::uint8_t { kPlan, kFloat32 };
template <>
inline constexpr auto kEnumNames<LoraDtype> = words<2>("plan fp32");

// kFused: the second GEMM adds to the layer's output. kTorch: dropout, scale and addition are ops
// of their own, and inputs are cast to the adapters' dtype (peft/tuners/lora/layer.py).
enum class LoraKernel : std::uint8_t { kFused, kTorch };
template <>
inline constexpr auto kEnumNames<LoraKernel> = words<2>("fused torch");

// Storage of the frozen weights of linear layers in blocks. kNf4 has a scale for 64 weights, kInt4
// scale and zero point for 128 (GPTQ, AWQ), kInt8 one scale for each output.
enum class BaseDtype : std::uint8_t { kPlan, kNf4, kInt4, kInt8 };
template <>
inline constexpr auto kEnumNames<BaseDtype> = words<4>("plan nf4 int4 int8");

struct Finetune {
  bool adapts = false;   // low-rank adapters are trained
  bool selects = false;  // without adapters: some of the model's weights are trained
  std::int64_t rank = 16;
  std::int64_t alpha = 32;
  std::int64_t dropout = 0;               // of the adapters' inputs, in percent
  std::int64_t targets = kLinearWeights;  // bits of WeightPart
  LoraScaling scaling = LoraScaling::kByRank;
  LoraDtype dtype = LoraDtype::kPlan;
  LoraKernel kernel = LoraKernel::kFused;
  BaseDtype base = BaseDtype::kPlan;
  // The scales of nf4 are stored in 8 bits, with an fp32 scale for 256 of them.
  bool double_quantization = true;
  // Bits of WeightPart that are trained beside adapters, or without adapters; 0 without adapters:
  // all weights of the blocks.
  std::int64_t trained = 0;
  // The trained layers: the last ones; if negative, the first ones; 0: all.
  std::int64_t layers = 0;

  bool freezes() const { return adapts || selects; }
  bool targets_any(std::int64_t bits) const { return adapts && (targets & bits) != 0; }
  // Bits of WeightPart that are trained in the chosen layers and around the blocks.
  std::int64_t chosen() const {
    if (adapts) return trained | part_bit(WeightPart::kAdapters);
    return !selects ? kAllParts : trained == 0 ? kBlockParts : trained;
  }
  bool quantizes_base() const { return adapts && base != BaseDtype::kPlan; }
  double scale() const {
    const auto r = static_cast<double>(rank);
    return static_cast<double>(alpha) / (scaling == LoraScaling::kByRank ? r : std::sqrt(r));
  }
  friend bool operator==(const Finetune&, const Finetune&) = default;
};

FinetuneMethod method_of(const Finetune& finetune);
// Sets the method. kQlora selects nf4 unless another base dtype is set.
void set_method(Finetune& finetune, FinetuneMethod method);

// Returns the dtype of adapters' weights.
inline DType adapter_dtype(const Finetune& finetune, DType plan) {
  return finetune.dtype == LoraDtype::kFloat32 ? DType::kFloat32 : plan;
}
// Returns the bytes of a frozen weight of a linear layer, with its share of the scales.
double base_weight_bytes(const Finetune& finetune, DType plan);

// Numbers of parameters of a model.
struct TrainedCounts {
  std::int64_t adapters = 0;  // all trained
  std::int64_t trained = 0;   // with the adapters
  std::int64_t frozen = 0;
};
// Returns the model in which every block states its trained weights, and whether it has a backward.
ModelSpec trained_model(const ModelSpec& model, const Finetune& finetune);
// Whether the table of word embeddings, or of the head, is trained. Tied tables are one.
bool trains_table(const ModelSpec& model, const Finetune& finetune, bool is_head);

TrainedCounts trained_counts(const ModelSpec& model, const Finetune& finetune);
// Returns the number of trained weights of one block of kind 0, with its adapters.
std::int64_t trained_block_count(const ModelSpec& block, const Finetune& finetune);
// Returns model_flops_per_step() without the weight gradients of frozen weights, with the adapters.
Flops finetune_flops_per_step(const ModelSpec& model, const Finetune& finetune,
                              std::int64_t global_batch);
// Returns what adapters cannot be added to; empty if nothing prevents them.
std::string_view unadapted_part(const ModelSpec& model);

}  // namespace tpsim
