// Maps an op of PyTorch's dispatcher to the record that costs/ prices.
#pragma once

#include <cstdint>

#include "core/base/enum_words.h"
#include "core/captured/captured_step.h"
#include "core/program/program.h"

namespace tpsim {

enum class WorkKind : std::uint8_t {
  kGemm,
  kAttention,
  kElementwise,  // also casts, copies and gathers of rows
  kReduction,    // norms, softmax, losses, sums, sorts
  kOptimizer,
  kHostCopy,  // between host and device
  kUnknown,   // a custom kernel: priced by its bytes
};
template <>
inline constexpr auto kEnumNames<WorkKind> =
    std::to_array<std::string_view>({"GEMMs", "attention", "elementwise ops", "reductions",
                                     "optimizer", "host copies", "unknown kernels"});
inline constexpr std::size_t kWorkKindCount = kEnumNames<WorkKind>.size();

struct KernelWork {
  explicit KernelWork(WorkKind of) : kind(of) {}

  WorkKind kind;
  OpRecord record{.key = {}, .label = {ModelPart::kReporting, "captured"}};
  double times = 1;       // of the record's price: 2 for attention without a causal mask
  bool is_rough = false;  // the kernel is not the one that the profile timed
};
KernelWork work_of(const CapturedKernel& kernel);

}  // namespace tpsim
