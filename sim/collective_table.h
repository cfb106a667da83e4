// Measured collectives of one node, read between the measured sizes and rank counts.
//
// Times grow with bytes: a smaller message that took longer sets a floor for larger ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/profile.h"

namespace tpsim {

class CollectiveTable {
 public:
  explicit CollectiveTable(const std::vector<CollectiveSample>& samples);

  // A group of `ranks` on one node; nothing when the kind was never measured.
  std::optional<Seconds> time(CollectiveKind kind, std::int64_t ranks, Bytes bytes) const;
  // The largest bus bandwidth measured: of this kind, at the rank count nearest to `ranks`.
  std::optional<BytesPerSecond> bus_bandwidth(CollectiveKind kind, std::int64_t ranks) const;
  // The time of the smallest message measured.
  std::optional<Seconds> smallest_time(CollectiveKind kind, std::int64_t ranks) const;
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

  static double time_on(const Curve& curve, double bytes);
  const Curve* nearest(CollectiveKind kind, std::int64_t ranks) const;

  std::vector<Curve> curves_;  // by kind, then ranks
};

}  // namespace tpsim
