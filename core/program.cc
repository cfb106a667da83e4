#include "core/program.h"

#include <fmt/format.h>

#include "core/text.h"

namespace tpsim {
namespace {

constexpr std::array<std::string_view, kTracedOpKindCount> kOpNames = {"matmul",
                                                                       "norm_forward",
                                                                       "norm_backward",
                                                                       "softmax_forward",
                                                                       "softmax_backward",
                                                                       "flash_forward",
                                                                       "flash_backward",
                                                                       "bias_gelu_forward",
                                                                       "bias_gelu_backward",
                                                                       "swiglu_forward",
                                                                       "swiglu_backward",
                                                                       "bias_residual",
                                                                       "dropout_forward",
                                                                       "dropout_backward",
                                                                       "column_sum",
                                                                       "rotary",
                                                                       "head_norm_forward",
                                                                       "head_norm_backward",
                                                                       "soft_cap_forward",
                                                                       "soft_cap_backward",
                                                                       "position_scale",
                                                                       "head_sum",
                                                                       "column_bias",
                                                                       "column_bias_gradient",
                                                                       "embedding_forward",
                                                                       "embedding_backward",
                                                                       "position_forward",
                                                                       "position_backward",
                                                                       "route_forward",
                                                                       "route_backward",
                                                                       "dispatch_tokens",
                                                                       "combine_tokens",
                                                                       "route_weight_gradient",
                                                                       "vocab_max",
                                                                       "vocab_sums",
                                                                       "vocab_rescale",
                                                                       "cross_entropy_loss",
                                                                       "cross_entropy_backward",
                                                                       "add",
                                                                       "scale",
                                                                       "fill",
                                                                       "copy",
                                                                       "copy_matrices",
                                                                       "cast",
                                                                       "sum_squares",
                                                                       "adamw",
                                                                       "init_normal",
                                                                       "convolution_forward",
                                                                       "convolution_backward",
                                                                       "scan_forward",
                                                                       "scan_backward",
                                                                       "gate_forward",
                                                                       "gate_backward"};
static_assert(!kOpNames.back().empty(), "a name for every kind");

constexpr std::array<std::string_view, 7> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "send", "receive", "all_to_all"};

constexpr std::array<std::string_view, kMemoryCategoryCount + 1> kCategoryNames = {
    "weights", "gradients", "optimizer", "activations", "workspace", "communication", "host"};

constexpr std::array<std::string_view, 10> kGroupNames = {
    "tensor", "data",    "pipeline", "embedding",   "model",
    "world",  "context", "expert",   "expert_data", "expert_tensor"};

}  // namespace

bool is_flash(OpKind kind) {
  return kind == OpKind::kFlashForward || kind == OpKind::kFlashBackward;
}

bool is_softmax(OpKind kind) {
  return kind == OpKind::kSoftmaxForward || kind == OpKind::kSoftmaxBackward;
}

bool is_scan(OpKind kind) { return kind == OpKind::kScanForward || kind == OpKind::kScanBackward; }

bool runs_on_matrix_units(OpKind kind) { return kind == OpKind::kMatmul || is_flash(kind); }

bool is_reduction(OpKind kind) {
  switch (kind) {
    case OpKind::kNormForward:
    case OpKind::kNormBackward:
    case OpKind::kSoftmaxForward:
    case OpKind::kSoftmaxBackward:
    case OpKind::kColumnSum:
    case OpKind::kEmbeddingBackward:
    case OpKind::kPositionBackward:
    case OpKind::kRouteForward:
    case OpKind::kRouteBackward:
    case OpKind::kRouteWeightGradient:
    case OpKind::kVocabMax:
    case OpKind::kVocabSums:
    case OpKind::kScanForward:
    case OpKind::kScanBackward:
    case OpKind::kGateForward:
    case OpKind::kGateBackward: return true;
    default: return false;
  }
}

std::string_view name_of(OpKind kind) { return kOpNames[static_cast<std::size_t>(kind)]; }
std::string_view name_of(CollectiveKind kind) {
  return kCollectiveNames[static_cast<std::size_t>(kind)];
}
std::string_view name_of(GroupKind kind) { return kGroupNames[static_cast<std::size_t>(kind)]; }
std::string_view name_of(MemoryCategory category) {
  return kCategoryNames[static_cast<std::size_t>(category)];
}

Result<OpKind> parse_op_kind(std::string_view name) {
  TPSIM_TRY(const std::size_t index, choose("op", name, kOpNames));
  return static_cast<OpKind>(index);
}

Result<CollectiveKind> parse_collective_kind(std::string_view name) {
  TPSIM_TRY(const std::size_t index, choose("collective", name, kCollectiveNames));
  return static_cast<CollectiveKind>(index);
}

std::string to_string(const OpKey& key) {
  std::string text(name_of(key.kind));
  if (key.kind == OpKind::kMatmul) {
    text += (key.variant & kTransposeA) != 0 ? " t" : " n";
    text += (key.variant & kTransposeB) != 0 ? "t " : "n ";
    if ((key.variant & kSplitSums) != 0) text += "split ";
  } else {
    text += ' ';
  }
  std::string dims;
  for (const std::int64_t dim : key.dims) {
    if (dim > 0) dims += fmt::format("{}{}", dims.empty() ? "" : "x", dim);
  }
  return text + dims + " " + std::string(name_of(key.dtype));
}

}  // namespace tpsim

std::size_t std::hash<tpsim::OpKey>::operator()(const tpsim::OpKey& key) const noexcept {
  std::uint64_t h = (static_cast<std::uint64_t>(key.kind) << 16) |
                    (static_cast<std::uint64_t>(key.dtype) << 8) | key.variant;
  for (const std::int64_t dim : key.dims) {
    h = (h ^ static_cast<std::uint64_t>(dim)) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
  }
  return static_cast<std::size_t>(h);
}
