// Interpolation of measured collectives of one node.
//
// Log-log in bytes between two sizes. Below the smallest size its time is used, and above the
// largest size its bandwidth. Times never decrease with bytes: a smaller message that took longer
// is a lower bound for larger ones. Rank counts between measured ones are interpolated in log n;
// larger counts have no time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

class CollectiveTable {
 public:
  explicit CollectiveTable(const std::vector<CollectiveSample>& samples);

  std::optional<Seconds> time(CollectiveKind kind, std::int64_t ranks, Bytes bytes) const;
  // Measured rank counts of this kind, ascending.
  std::vector<std::int64_t> rank_counts(CollectiveKind kind) const;

 private:
  struct Point {
    double log_bytes = 0;
    double log_seconds = 0;
  };
  struct Curve {
    CollectiveKind kind{};
    std::int64_t ranks = 0;
    std::vector<Point> points;  // by bytes
  };

  static double log_time(const Curve& curve, double bytes);

  std::vector<Curve> curves_;  // by kind, then ranks
};

}  // namespace tpsim
