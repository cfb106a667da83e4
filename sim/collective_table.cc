#include "sim/collective_table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/nccl_model.h"

namespace tpsim {
namespace {

double lerp_between(double x, double x0, double y0, double x1, double y1) {
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
    double floor = 0;
    for (const auto& [bytes, seconds] : by_bytes) {
      floor = std::max(floor, seconds);
      curve.points.push_back({std::log(bytes), std::log(floor)});
    }
    curves_.push_back(std::move(curve));
  }
}

// Log-log between points; below the smallest its time, above the largest at its bandwidth.
double CollectiveTable::time_on(const Curve& curve, double bytes) {
  const double x = std::log(bytes);
  const std::vector<Point>& points = curve.points;
  if (x <= points.front().log_bytes) return std::exp(points.front().log_seconds);
  if (x >= points.back().log_bytes) {
    return std::exp(points.back().log_seconds + x - points.back().log_bytes);
  }
  const auto above = std::upper_bound(points.begin(), points.end(), x,
                                      [](double v, const Point& p) { return v < p.log_bytes; });
  const auto below = above - 1;
  return std::exp(lerp_between(x, below->log_bytes, below->log_seconds, above->log_bytes,
                               above->log_seconds));
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
  if (below == nullptr && above == nullptr) return std::nullopt;
  const double size = bytes.value();
  if (below == above) return Seconds(time_on(*below, size));
  if (below != nullptr && above != nullptr) {
    // Per unit of bus traffic, rank counts in between cost something in between.
    const double n = std::log2(static_cast<double>(ranks));
    const double n0 = std::log2(static_cast<double>(below->ranks));
    const double n1 = std::log2(static_cast<double>(above->ranks));
    return Seconds(std::exp(lerp_between(n, n0, std::log(time_on(*below, size)), n1,
                                         std::log(time_on(*above, size)))));
  }
  const Curve& only = below != nullptr ? *below : *above;
  const double scale = bus_factor(kind, ranks) / bus_factor(kind, only.ranks);
  const double hops = static_cast<double>(ring_steps(kind, ranks)) /
                      static_cast<double>(ring_steps(kind, only.ranks));
  const double smallest = std::exp(only.points.front().log_seconds);
  return Seconds(smallest * (hops - scale) * 0.5 + time_on(only, size) * scale);
}

const CollectiveTable::Curve* CollectiveTable::nearest(CollectiveKind kind,
                                                       std::int64_t ranks) const {
  const Curve* best = nullptr;
  for (const Curve& curve : curves_) {
    if (curve.kind != kind) continue;
    if (best == nullptr || std::abs(curve.ranks - ranks) < std::abs(best->ranks - ranks)) {
      best = &curve;
    }
  }
  return best;
}

std::optional<BytesPerSecond> CollectiveTable::bus_bandwidth(CollectiveKind kind,
                                                             std::int64_t ranks) const {
  const Curve* curve = nearest(kind, ranks);
  if (curve == nullptr) return std::nullopt;
  double best = 0;
  for (const Point& point : curve->points) {
    best = std::max(best, std::exp(point.log_bytes - point.log_seconds));
  }
  return BytesPerSecond(best * bus_factor(kind, curve->ranks));
}

std::optional<Seconds> CollectiveTable::smallest_time(CollectiveKind kind,
                                                      std::int64_t ranks) const {
  for (const Curve& curve : curves_) {
    if (curve.kind == kind && curve.ranks == ranks) {
      return Seconds(std::exp(curve.points.front().log_seconds));
    }
  }
  return std::nullopt;
}

std::vector<std::int64_t> CollectiveTable::rank_counts(CollectiveKind kind) const {
  std::vector<std::int64_t> counts;
  for (const Curve& curve : curves_) {
    if (curve.kind == kind) counts.push_back(curve.ranks);
  }
  return counts;
}

}  // namespace tpsim
