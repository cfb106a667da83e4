// Measured collectives of one node, read between the measured sizes and rank counts.
//
// Log-log in bytes between two sizes; the smallest size's time below it, the largest one's
// bandwidth above it. Times grow with bytes: a smaller message that took longer sets a floor for
// larger ones. Rank counts in between are interpolated in log n; counts beyond those measured have
// no time.
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
  // Rank counts measured for this kind, ascending.
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
