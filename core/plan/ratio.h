// Ratios as values of knobs (FieldKind::kWordOrRatio in core/plan/field.h), stored in thousandths.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace tpsim {

inline constexpr double kThousandths = 1000, kGreatestRatio = 1e6;

// Returns nothing if the ratio is below 1 or above kGreatestRatio.
inline std::optional<std::int64_t> ratio_value(double ratio) {
  if (!(ratio >= 1 && ratio <= kGreatestRatio)) return std::nullopt;
  return static_cast<std::int64_t>(std::lround(ratio * kThousandths));
}

}  // namespace tpsim
