#include "kernels/cpu/scratch.h"

#include <algorithm>
#include <new>

namespace tpsim {
namespace {

constexpr std::align_val_t kScratchAlignment{64};
constexpr std::int64_t kFloatsPerLine = 16;
constexpr std::int64_t kLeastBlock = 1 << 16;

}  // namespace

void Scratch::Free::operator()(float* data) const { ::operator delete[](data, kScratchAlignment); }

float* Scratch::floats(std::int64_t count) {
  const std::int64_t rounded = (count + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
  if (blocks_.empty() || blocks_.back().used + rounded > blocks_.back().size) {
    const std::int64_t size = std::max(rounded, kLeastBlock);
    auto* data = static_cast<float*>(
        ::operator new[](static_cast<std::size_t>(size) * sizeof(float), kScratchAlignment));
    blocks_.push_back({std::unique_ptr<float[], Free>(data), size, 0});
  }
  Block& block = blocks_.back();
  block.used += rounded;
  return block.data.get() + (block.used - rounded);
}

void Scratch::clear() {
  if (blocks_.size() > 1) {
    std::int64_t total = 0;
    for (const Block& block : blocks_) total += block.used;
    blocks_.clear();
    static_cast<void>(floats(total));
  }
  if (!blocks_.empty()) blocks_.back().used = 0;
}

}  // namespace tpsim
