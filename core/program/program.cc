#include "core/program/program.h"

#include <fmt/format.h>

namespace tpsim {

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
