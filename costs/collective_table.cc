#include "costs/collective_table.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tpsim {
namespace {

// Linear interpolation at x between (x0, y0) and (x1, y1).
double line_through(double x0, double y0, double x1, double y1, double x) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

}  // namespace

CollectiveTable::CollectiveTable(const std::vector<CollectiveSample>& samples) {
  std::map<std::pair<CollectiveKind, std::int64_t>, std::map<double, double>> sorted;
  for (const CollectiveSample& sample : samples) {
    if (sample.ranks < 2 || sample.bytes.value() <= 0 || sample.median.value() <= 0) continue;
    sorted[{sample.kind, sample.ranks}][sample.bytes.value()] = sample.median.value();
  }
  for (const auto& [key, by_bytes] : sorted) {
    Curve curve{key.first, key.second, {}};
    // Medians of small messages are noisy. If time decreased with bytes, plans that send more would
    // look faster.
    double floor = 0;
    for (const auto& [bytes, seconds] : by_bytes) {
      floor = std::max(floor, seconds);
      curve.points.push_back({std::log(bytes), std::log(floor)});
    }
    curves_.push_back(std::move(curve));
  }
}

double CollectiveTable::log_time(const Curve& curve, double bytes) {
  const double x = std::log(bytes);
  const std::vector<Point>& points = curve.points;
  if (x <= points.front().log_bytes) return points.front().log_seconds;
  // Slope 1: the time of large messages is proportional to their bytes.
  if (x >= points.back().log_bytes) return points.back().log_seconds + x - points.back().log_bytes;
  const auto above = std::upper_bound(points.begin(), points.end(), x,
                                      [](double v, const Point& p) { return v < p.log_bytes; });
  const auto below = above - 1;
  return line_through(below->log_bytes, below->log_seconds, above->log_bytes, above->log_seconds,
                      x);
}

std::optional<Seconds> CollectiveTable::time(CollectiveKind kind, std::int64_t ranks,
                                             Bytes bytes) const {
  const Curve* below = nullptr;
  const Curve* above = nullptr;
  for (const Curve& curve : curves_) {
    if (curve.kind != kind) continue;
    if (curve.ranks <= ranks) below = &curve;
    if (curve.ranks >= ranks && above == nullptr) above = &curve;
  }
  if (below == nullptr || above == nullptr) return std::nullopt;
  const double at_below = log_time(*below, bytes.value());
  if (below == above) return Seconds(std::exp(at_below));
  const double at_above = log_time(*above, bytes.value());
  return Seconds(std::exp(line_through(std::log(below->ranks), at_below, std::log(above->ranks),
                                       at_above, std::log(ranks))));
}

std::vector<std::int64_t> CollectiveTable::rank_counts(CollectiveKind kind) const {
  std::vector<std::int64_t> counts;
  for (const Curve& curve : curves_) {
    if (curve.kind == kind) counts.push_back(curve.ranks);
  }
  return counts;
}

}  // namespace tpsim
