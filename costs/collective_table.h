// Times of collectives inside one node, interpolated between measured samples.
//
// Between two measured sizes, log(time) is linear in log(bytes). Messages below the smallest size
// take its time, and messages above the largest size run at its bandwidth. Times never decrease
// with bytes: a sample that is faster than a smaller message gets the time of the smaller one.
// Between two measured rank counts, log(time) is linear in log(ranks). time() is empty outside the
// range of measured rank counts.
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
